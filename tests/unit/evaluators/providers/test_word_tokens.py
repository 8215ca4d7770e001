"""Token ids put together from words are those of the whole text."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.providers import word_tokens
from evaluators.providers.word_tokens import BLANK, WordTokens
from evaluators.providers.wordllama import _load, _tokens_of

TOKENIZER = _load().tokenizer
WORDS = _tokens_of(_load())
PIECES = [
    " ",
    "  ",
    "a",
    "the",
    "Zürich",
    "\n",
    "\t",
    "<s>",
    "</s>",
    BLANK,
    "日本",
    "🙂",
    "\x00",
    ".",
]


def whole(text: str) -> list[int]:
    return TOKENIZER.encode(text, add_special_tokens=False).ids


def test_this_vocabulary_can_be_taken_apart() -> None:
    assert WORDS.separable


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_words_give_what_the_text_gives(text: str) -> None:
    assert list(WORDS.ids(text)) == whole(text)
    assert list(WORDS.ids(text)) == whole(text)  # now from memory


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_text_gives_the_same(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()

    assert list(WORDS.ids(text)) == whole(text)


def test_a_vocabulary_whose_tokens_cross_blanks_is_asked_for_whole_texts() -> None:
    asked: list[str] = []

    def encode(text: str) -> Sequence[int]:
        asked.append(text)
        return [1]

    tokens = WordTokens(encode, {BLANK: 0, f"of{BLANK}the": 1}, ())

    assert list(tokens.ids("of the of the")) == [1]
    assert asked == ["of the of the"]


def test_words_are_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_tokens, "_WORDS", 50)
    tokens = _tokens_of(_load())

    for number in range(100):
        assert list(tokens.ids(f"w{number} v{number}")) == whole(f"w{number} v{number}")
    tokens.ids("x" * 1000)

    assert len(tokens._known) <= 50
    assert max(map(len, tokens._known)) <= 32
