"""The local embedder: no network, no noise, the same vector whatever stands beside a text."""

import math
import subprocess
import sys
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.matching.text import cosine_distance
from evaluators.providers import word_vectors
from evaluators.providers.word_vectors import BLANK, SHORT, WordVectors
from evaluators.providers.wordllama import TEXT_LIMIT, WordLlamaEmbedder, _load, _words

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


@pytest.mark.process
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


def test_texts_close_in_meaning_have_close_vectors_whatever_is_beside_them(
    embedder: WordLlamaEmbedder,
) -> None:
    fell = "Shares fell sharply."
    weather, rain, stocks = embedder.embed(
        ["The weather in Paris is sunny.", "It is raining in Paris today.", fell]
    )
    (alone,) = WordLlamaEmbedder().embed([fell])

    assert cosine_distance(weather, rain) < cosine_distance(weather, stocks)
    assert list(alone) == list(stocks)


@pytest.mark.parametrize("words", [1, SHORT // 2, SHORT - 1, SHORT * 2])
def test_a_vector_is_the_exact_mean_of_the_tokens_vectors(
    embedder: WordLlamaEmbedder, words: int
) -> None:
    """So it is the same however it is summed: in whatever order, repeated tokens together or one by one."""
    text = "the rain in Spain stays mainly in the plain "
    some = " ".join((text * words).split()[:words])

    (vector,) = embedder.embed([some])

    assert len(some) < TEXT_LIMIT
    assert list(vector) == plain_mean(some)


def test_every_number_of_the_model_has_eleven_bits() -> None:
    assert (MODEL.embedding.astype("float16") == MODEL.embedding).all()


def test_only_the_beginning_of_a_long_text_is_read(embedder: WordLlamaEmbedder) -> None:
    first, second = embedder.embed(["word " * 1000, "word " * 1000 + "something else"])

    assert TEXT_LIMIT < 5000
    assert list(first) == list(second)


def test_any_text_has_a_vector_and_no_more_are_remembered_than_should_be(
    embedder: WordLlamaEmbedder,
) -> None:
    vectors = embedder.embed(["", "   ", "\ud800", "日本語", "🙂" * 3000, *map(str, range(50))])

    assert {len(vector) for vector in vectors} == {256}
    assert len(embedder._known) == 4


MODEL = _load()
TOKENIZER = MODEL.tokenizer
VECTORS = _words.__wrapped__()  # of its own
PIECES = [
    *(" ", "  ", "a", "the", "Zürich", "\n", "\t", "<s>", "</s>", BLANK, "日本", "🙂", "\x00", "."),
]


def whole(text: str) -> list[int]:
    return TOKENIZER.encode(text, add_special_tokens=False).ids


def test_this_vocabulary_can_be_taken_apart() -> None:
    assert VECTORS.separable


def test_a_vocabulary_whose_tokens_cross_blanks_is_asked_for_whole_texts() -> None:
    asked: list[str] = []

    def encode(text: str) -> Sequence[int]:
        asked.append(text)
        return [1]

    vectors = WordVectors(encode, {BLANK: 0, f"of{BLANK}the": 1}, (), MODEL.embedding)

    assert vectors.mean("of the of the").tolist() == MODEL.embedding[1].tolist()
    assert asked == ["of the of the"]


def plain_mean(text: str) -> list[float]:
    """Of the tokens that the tokenizer gives for the whole text, summed one by one."""
    rows = MODEL.embedding[whole(text)].astype(float)
    return [math.fsum(column) / len(rows) for column in rows.T] if len(rows) else [0.0] * 256


TEXTS = st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace").decode())


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | TEXTS)
def test_the_mean_of_words_is_that_of_tokens(text: str) -> None:
    assert VECTORS.mean(text).tolist() == plain_mean(text)
    assert VECTORS.mean(text).tolist() == plain_mean(text)  # now from memory


def test_sums_are_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_vectors, "ROWS", 20)
    vectors = _words.__wrapped__()

    for number in range(30):
        text = f"w{number} v{number} {'x' * 1000} the w{number}"
        assert vectors.mean(text).tolist() == plain_mean(text)
        assert len(vectors._rows) <= 20
        assert max(map(len, vectors._rows)) <= 32
    text = " ".join(map(str, range(40)))  # more words than there is room for

    assert vectors.mean(text).tolist() == plain_mean(text)
