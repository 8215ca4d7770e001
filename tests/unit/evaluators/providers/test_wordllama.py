"""The local embedder: no network, no noise, the same vector whatever stands beside a text."""

from __future__ import annotations

import subprocess
import sys

import pytest

from evaluators.matching.text import cosine_distance
from evaluators.providers.wordllama import TEXT_LIMIT, WordLlamaEmbedder

QUIET = """
import logging, socket
def refuse(*_): raise OSError("no network here")
socket.socket.connect = refuse
before = (logging.getLogger().handlers[:], logging.getLogger().level)
from evaluators.providers.wordllama import WordLlamaEmbedder
vectors = WordLlamaEmbedder().embed(["hello world", ""])
assert len(vectors[0]) == 256
assert (logging.getLogger().handlers[:], logging.getLogger().level) == before
"""


def test_it_loads_without_network_and_without_output() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", QUIET],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.fixture(scope="module")
def embedder() -> WordLlamaEmbedder:
    return WordLlamaEmbedder(remember=4)


def test_texts_close_in_meaning_have_close_vectors(embedder: WordLlamaEmbedder) -> None:
    weather, rain, stocks = embedder.embed(
        ["The weather in Paris is sunny.", "It is raining in Paris today.", "Shares fell sharply."]
    )

    assert cosine_distance(weather, rain) < cosine_distance(weather, stocks)


def test_a_text_s_vector_does_not_depend_on_its_neighbours(embedder: WordLlamaEmbedder) -> None:
    alone = list(WordLlamaEmbedder().embed(["short"])[0])

    beside = list(embedder.embed(["a much longer text than the other one " * 9, "short"])[1])

    assert beside == alone


def test_only_the_beginning_of_a_long_text_is_read(embedder: WordLlamaEmbedder) -> None:
    first, second = embedder.embed(["word " * 1000, "word " * 1000 + "something else"])

    assert TEXT_LIMIT < 5000
    assert list(first) == list(second)


@pytest.mark.parametrize("text", ["", "   ", "\ud800", "日本語", "🙂" * 3000])
def test_any_text_has_a_vector(embedder: WordLlamaEmbedder, text: str) -> None:
    (vector,) = embedder.embed([text])

    assert len(vector) == 256


def test_it_remembers_no_more_texts_than_it_should(embedder: WordLlamaEmbedder) -> None:
    embedder.embed([f"text {n}" for n in range(50)])

    assert len(embedder._known) == 4
