"""Scores of like times, and the rank of a score among them. Pure."""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right, insort
from typing import NamedTuple

_HEAD = struct.Struct("<dQ")


class Insertion(NamedTuple):
    """One score that was inserted."""

    number: int
    score: float
    minute: int


class Stratum:
    """The newest scores of like times, in the order of insertion."""

    def __init__(self) -> None:
        self._scores = array("f")
        self._minutes = array("I")
        self._sorted = array("f")
        self.number = 0
        """Of the last insertion."""
        self.written = 0
        """Of the last insertion that its stored record holds."""

    def __len__(self) -> int:
        return len(self._scores)

    def expire(self, before: int) -> int:
        """Forget scores from before that minute; returns how many."""
        if not self._minutes or self._minutes[0] >= before:
            return 0
        count = bisect_left(self._minutes, before)
        self._forget(count)
        return count

    def insert(self, entry: Insertion, newest: int) -> int:
        """Insert a score, whose minute is not before the last one's; returns how many had to leave."""
        self._scores.append(entry.score)
        self._minutes.append(entry.minute)
        insort(self._sorted, entry.score)
        self.number = entry.number
        gone = len(self._scores) - newest
        if gone <= 0:
            return 0
        self._forget(gone)
        return gone

    def rank(self, score: float, tie: float) -> float:
        """In (0, 1): the share of the scores, this one among them, that are less; `tie` in [0, 1) orders equal ones."""
        less, up_to = bisect_left(self._sorted, score), bisect_right(self._sorted, score)
        return (less + tie * (up_to - less + 1)) / (len(self._sorted) + 1)

    def pack(self, begun: float) -> bytes:
        """The stratum as bytes; `begun` is that of its history."""
        count = len(self._scores)
        scores = struct.pack(f"<{count}f", *self._scores)
        return _HEAD.pack(begun, self.number) + scores + struct.pack(f"<{count}I", *self._minutes)

    @classmethod
    def unpack(cls, packed: bytes) -> tuple[float, Stratum]:
        """The beginning of its history, and the stratum.

        Raises:
            ValueError: `pack` did not give it.
        """
        count, rest = divmod(len(packed) - _HEAD.size, 8)
        if count < 0 or rest:
            raise ValueError("not a stratum of scores")
        stratum = cls()
        begun, number = cls.head(packed)
        stratum.number = stratum.written = number
        stratum._scores = array("f", struct.unpack_from(f"<{count}f", packed, _HEAD.size))
        minutes = struct.unpack_from(f"<{count}I", packed, _HEAD.size + 4 * count)
        stratum._minutes = array("I", minutes)
        stratum._sorted = array("f", sorted(stratum._scores))
        return begun, stratum

    @staticmethod
    def head(packed: bytes) -> tuple[float, int]:
        """Of a packed stratum, the beginning of its history and the number of its last insertion."""
        begun, number = _HEAD.unpack_from(packed)
        return begun, number

    def _forget(self, count: int) -> None:
        for score in self._scores[:count]:
            del self._sorted[bisect_left(self._sorted, score)]
        del self._scores[:count]
        del self._minutes[:count]
