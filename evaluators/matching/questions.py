"""Which earlier questions of its session a question asks again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from evaluators.matching.text import QUESTION, ascii_words, clip

_WORD = re.compile(r"\w+")
LEAST = 12
"""Bytes of words below which a text asks for nothing: "thanks", "continue", "another one"."""


def asked_again(question: str | None, earlier: Sequence[str | None]) -> frozenset[int]:
    """The places of the earlier questions that ask for the same: a chain of them leads to this one.

    Two questions ask for the same when one has every word of the other: "Hello?? Has my order 4711 shipped or not?"
    asks "Has my order 4711 shipped?" again, "Has my order 4712 shipped?" does not, and neither does "Translate: cats"
    ask "Translate: dogs". A question that is not known may ask for anything; of one that is longer than what is kept,
    the part that differs may be missing, and "thanks" or "continue" is not a question: they ask for nothing again.
    """
    now = _words(question)
    if now is None:
        return frozenset(range(len(earlier)))
    before = [_words(each) for each in earlier]
    again = {place for place, words in enumerate(before) if words is None}
    linked = [now]
    while linked:
        one = linked.pop()
        for place, words in enumerate(before):
            if words is not None and place not in again and _is_same(one, words):
                again.add(place)
                linked.append(words)
    return frozenset(again)


def _words(question: str | None) -> frozenset[str] | None:
    return None if question is None else _words_of(clip(question, QUESTION))


@lru_cache(maxsize=256)
def _words_of(kept: str) -> frozenset[str]:
    if len(kept.encode(errors="replace")) > QUESTION - 4:  # a cut leaves out a character's bytes
        return frozenset()
    words = ascii_words(kept) if kept.isascii() else _WORD.findall(kept.lower())
    size = len("".join(words).encode(errors="replace"))
    return frozenset(words) if size >= LEAST else frozenset()


def _is_same(one: frozenset[str], other: frozenset[str]) -> bool:
    return bool(one and other) and (one <= other or other <= one)
