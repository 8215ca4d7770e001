"""Which earlier questions of its session a question asks again."""

import math
import re
import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from evaluators.matching.text import QUESTION, ascii_words, clip
from evaluators.resources import Vector


def packed_direction(vector: Vector) -> bytes:
    """The vector of length 1 in the same direction, in float64; zeros for a vector without length."""
    numbers: Any = vector
    values: list[float] = numbers.tolist() if hasattr(numbers, "tolist") else [*vector]
    length = math.hypot(*values) or 1.0
    return struct.pack(f"{len(values)}d", *[each / length for each in values])


def cosines(packed: bytes, others: Iterable[bytes]) -> list[float]:
    """The cosine similarity of a direction with each of the others, by `cosine_distance`: from 0 to 1.

    From how far apart they are, which `math.dist` computes in C: the process that compares needs no numpy, which takes
    a tenth of a second and 10 MB. Raises ValueError: the vectors have different lengths.
    """
    mine = _unpacked(packed)
    return [_cosine(mine, _unpacked(each)) for each in others]


def _cosine(left: tuple[float, ...], right: tuple[float, ...]) -> float:
    if not any(left) or not any(right):
        return 0.0
    return max(0.0, 1.0 - math.dist(left, right) ** 2 / 2)


def _unpacked(packed: bytes) -> tuple[float, ...]:
    return struct.unpack(f"{len(packed) // 8}d", packed)


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
            if (
                words is not None
                and place not in again
                and (bool(one and words) and (one <= words or words <= one))
            ):
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
