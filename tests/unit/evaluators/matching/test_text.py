"""Beginnings of texts: at most so many bytes, never half a character."""

from __future__ import annotations

import pytest

from evaluators.matching.text import LIMIT, clip


@pytest.mark.parametrize(
    "text", ["", "short", "a" * LIMIT, "\u00e4" * (LIMIT // 2), "\U0001f642" * 2048]
)
def test_a_text_within_the_limit_stays_as_it_is(text: str) -> None:
    assert clip(text) == text


@pytest.mark.parametrize("character", ["a", "\u00e4", "\u65e5", "\U0001f642", "\ud800"])
@pytest.mark.parametrize("limit", [10, 11, 12, 13, LIMIT])
def test_a_longer_text_is_cut_between_characters(character: str, limit: int) -> None:
    width = len(character.encode("utf-8", "surrogatepass"))

    assert clip(character * LIMIT, limit) == character * (limit // width)


def test_half_a_surrogate_pair_before_the_cut_is_kept() -> None:
    text = "a\ud800b" * LIMIT

    assert text.startswith(clip(text))
    assert len(clip(text).encode("utf-8", "surrogatepass")) > LIMIT - 3
