"""Beginnings of texts: at most so many bytes, never half a character. Words, also those found the fast way."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.matching.text import LIMIT, ascii_words, clip, words
from tests.support.table import for_each


@for_each("text", ["", "short", "a" * LIMIT, "\u00e4" * (LIMIT // 2), "\U0001f642" * 2048])
def test_a_text_within_the_limit_stays_as_it_is(text: str) -> None:
    assert clip(text) == text


@for_each("character", ["a", "\u00e4", "\u65e5", "\U0001f642", "\ud800"])
@for_each("limit", [10, 11, 12, 13, LIMIT])
def test_a_longer_text_is_cut_between_characters(character: str, limit: int) -> None:
    width = len(character.encode("utf-8", "surrogatepass"))

    assert clip(character * LIMIT, limit) == character * (limit // width)


def test_half_a_surrogate_pair_before_the_cut_is_kept() -> None:
    text = "a\ud800b" * LIMIT

    assert text.startswith(clip(text))
    assert len(clip(text).encode("utf-8", "surrogatepass")) > LIMIT - 3


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(max_codepoint=127), max_size=40))
def test_words_of_ascii_are_those_of_any_text(text: str) -> None:
    assert ascii_words(text) == re.findall(r"\w+", text.lower())
    # The letter makes it a text that an expression has to look at.
    assert words(text) == words(text + " \u00e9")


def test_every_character_of_ascii_is_a_word_s_or_none() -> None:
    for character in map(chr, range(128)):
        assert ascii_words(character) == re.findall(r"\w+", character.lower())


@for_each("text", ["The cat, the CAT_2 and a 7 x", "The cat, the CAT_2 & \u00fc"])
def test_words_are_longer_than_a_character_and_carry_content(text: str) -> None:
    assert words(text) == {"cat", "cat_2"}
