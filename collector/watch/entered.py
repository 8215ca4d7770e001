"""Which subjects (sessions or traces) have entered a detector: each does so once. Pure."""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, insort

from collector.records.windows import SettlingUses
from evaluators.formulas.fault_watch import EarlierUse

MOST = 4096  # subjects that are remembered: the newest. One that was forgotten and says something again enters again.
MAX_LATELY = 4096
"""Entries of sessions in watches that are remembered, 60 kB: one that is forgotten may enter again too soon."""
TAIL = 128  # subjects that the state names by itself before the part must be written
_NUMBER = struct.Struct("<Q")


class Entered:
    """The newest subjects, by numbers of 64 bits, in the order in which they entered; 64 kB when full.

    They are stored as a part, written from time to time, and as what the state carries: how many have entered, and
    the newest, which the part may lack.
    """

    def __init__(self, count: int = 0, newest: bytes = b"", part: bytes = b"") -> None:
        """As they were stored; the part may be older than the rest, or missing. Raises ValueError: they were not."""
        self.count = count  # how many have entered, those that were forgotten too
        tail = _unpacked(newest)
        self._written, self._subjects = _unpacked_part(part)
        if self._written > count:  # of a state before this one, which could not be read
            self._written, self._subjects = 0, array("Q")
        lacking = count - self._written
        self._subjects.extend(tail[max(0, len(tail) - lacking) :])
        del self._subjects[:-MOST]
        self._sorted = array("Q", sorted(self._subjects))

    def __contains__(self, subject: int) -> bool:
        at = bisect_left(self._sorted, subject)
        return at < len(self._sorted) and self._sorted[at] == subject

    def add(self, subject: int) -> None:
        """The subject enters; above MOST the one that entered first is forgotten."""
        self.count += 1
        self._subjects.append(subject)
        insort(self._sorted, subject)
        if len(self._subjects) > MOST:
            del self._sorted[bisect_left(self._sorted, self._subjects.pop(0))]

    @property
    def newest(self) -> bytes:
        """For the state: those that the part lacks."""
        lacking = min(self.count - self._written, len(self._subjects))
        return _packed(self._subjects[len(self._subjects) - lacking :])

    def due(self) -> bytes | None:
        """The part, if it must be written now, so that the state stays small."""
        if self.count - self._written < TAIL:
            return None
        return _NUMBER.pack(self.count) + _packed(self._subjects)

    def written(self, part: bytes) -> None:
        """The state, and after it this part as `due` gave it, are stored."""
        (self._written,) = _NUMBER.unpack_from(part)


def _packed(subjects: array[int]) -> bytes:
    return struct.pack(f"<{len(subjects)}Q", *subjects)


def _unpacked_part(part: bytes) -> tuple[int, array[int]]:
    if not part:
        return 0, array("Q")
    return *_NUMBER.unpack_from(part), _unpacked(part[_NUMBER.size :])


def _unpacked(packed: bytes) -> array[int]:
    count, rest = divmod(len(packed), 8)
    if rest:
        raise ValueError("not the subjects that entered")
    return array("Q", struct.unpack(f"<{count}Q", packed))


class LatelyUsed:
    """Which watches the newest sessions entered, so that each enters one once in `settle` seconds.

    It enters once more when it fails after a use that did not: the failure is what is looked for.
    """

    def __init__(self, settle: float, packed: dict[int, int]) -> None:
        self._settle = settle
        self.packed = packed
        """By digest of session and watch, twice the second at which it entered, and 1 if it failed; the newest last."""

    def get(self, key: int) -> EarlierUse | None:
        packed = self.packed.get(key)
        return None if packed is None else EarlierUse(packed >> 1, bool(packed & 1))

    def enters(self, key: int, turn: SettlingUses, *, failed: bool) -> bool:
        """Whether this use of a session's enters; it is remembered then."""
        earlier = self.get(key)
        if earlier is not None:
            is_late = turn.seen - earlier.seen >= self._settle
            if turn.is_revised or not (is_late or (failed and not earlier.failed)):
                return False
            del self.packed[key]
        elif len(self.packed) >= MAX_LATELY:
            del self.packed[next(iter(self.packed))]
        self.packed[key] = 2 * int(turn.seen) + failed
        return True
