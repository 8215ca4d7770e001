"""The earlier scores of one label set, in strata of like times, and the rank of a score among them. Pure.

There are three levels: one stratum of all scores, 48 hours of the day (UTC; those of Saturdays and Sundays apart), 168
hours of the week. A score is compared with its stratum of the finest level that has enough scores on average; when that
stratum itself has too few, the score is not compared. The choice depends on counts and times, never on scores, so that
the ranks of scores that do not change are uniform. docs/decisions/024-own-history.md says what was simulated for it.

How it is stored. Every insertion has a number. The small state carries the newest insertions as a journal; a stratum
is stored by itself, at most 8 kB, with the number of its last insertion. The caller writes the small state, then, in
the same batch, the strata that are `due`, and says `written` once they are there: until then the journal keeps what
they hold. A stratum that is read back older than the small state takes from the journal what it lacks, and nothing
twice. A stored stratum of a history that has begun again since is known by its beginning, and ignored. Without any
caller that writes, the journal keeps the newest 4,096 insertions.

Memory, 12 bytes a score: at most 1,000 in all, 500 for each hour of the day, 320 for each of the week: 0.95 MB a label
set, above 125 scores an hour; 0.8 MB at 40 an hour, 70 kB at 70 a day.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from evaluators.formulas.past_limits import PastLimits

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
        self.number = 0  # of the last insertion
        self.written = 0  # of the last insertion that its stored record holds

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
        """The beginning of its history, and the stratum. Raises ValueError: `pack` did not give it."""
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
        begun, number = _HEAD.unpack_from(packed)
        return begun, number

    def _forget(self, count: int) -> None:
        for score in self._scores[:count]:
            del self._sorted[bisect_left(self._sorted, score)]
        del self._scores[:count]
        del self._minutes[:count]


HOURS = 1  # the stratum of all scores is 0, those of the hours of working days begin with this one
OTHER = 67  # no stratum: a name under which the caller stores something of its own
WEEKEND_HOURS = OTHER + 1  # those of the hours of Saturdays and Sundays begin with this one
WEEK = WEEKEND_HOURS + 24  # those of the hours of the week begin with this one
STRATA = WEEK + 168
"""A stratum's name is its number, below this one; there is none from 25 to 66, which an older version used."""
WEEKEND = (2, 3)  # days of the week; day 0 is the Thursday with which 1970 began
MOST_JOURNAL = 4096
"""Insertions that wait to be written; strata with older ones are due, and until they are written lack these."""
_FLOAT = struct.Struct("f")
_MINUTE = 60
"""Times are kept in whole minutes: two bytes instead of eight."""


class HistoryState(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What of a history is written each time; about 1 kB."""

    begun: float = 0.0  # log time of the first score; 0: there is none
    number: int = 0  # of the last insertion
    journal: bytes = b""
    """The last insertions, oldest first: scores as float32, then minutes as uint32."""


class OwnHistory:
    """The strata of one label set."""

    def __init__(
        self,
        limits: PastLimits,
        state: HistoryState | None = None,
        strata: Mapping[int, bytes] | None = None,
    ) -> None:
        """`state` and `strata` as they were stored; a stratum may be older than the state, or missing.

        Raises ValueError: they were not.
        """
        self._limits = limits
        self._oldest = tuple(
            int(age) // _MINUTE for age in (limits.age, limits.hour_age, limits.week_age)
        )
        self._newest = (limits.newest, limits.hour_newest, limits.week_newest)
        self._strata: dict[int, Stratum] = {}
        self._counts = [0, 0, 0]
        self._forgot_at = -1
        self._named = (-1, _names(0))
        self._lacking: set[int] = set()
        self._begun = state.begun if state else 0.0
        self._number = state.number if state else 0
        self._journal: deque[Insertion] = deque(_insertions(state) if state else ())
        for name, packed in (strata or {}).items():
            begun, stratum = Stratum.unpack(packed)
            if begun == self._begun and stratum.number <= self._number and _is_name(name):
                self._strata[name] = stratum
                self._counts[((name >= HOURS) + (name >= WEEK))] += len(stratum)
        for entry in self._journal:
            self._put(entry, _names(entry.minute))

    @property
    def begun(self) -> float:
        """Log time of the first score; 0: there is none."""
        return self._begun

    @property
    def samples(self) -> int:
        return max(self._counts)

    def rank(self, score: float, tie: float, time: float, *, frozen: bool = False) -> float | None:
        """The score's rank in its stratum, uniform in (0, 1) while nothing changes; None: there are too few scores.

        `frozen`: the history is not to change, so no score of it is forgotten.
        """
        minute = int(time) // _MINUTE
        names = self._names(minute)
        if not frozen:
            self._forget_old(names, minute)
        limits, (_, hours, week) = self._limits, self._counts
        if week >= 168 * limits.own and time - self._begun >= limits.weekly_after:
            name = names[2]
        else:
            name = names[1] if hours >= 24 * limits.own else names[0]
        stratum = self._strata.get(name)
        if stratum is None or len(stratum) < limits.least:
            return None
        return stratum.rank(_float32(score), tie)

    def insert(self, score: float, time: float) -> None:
        """Insert a score, whose time is not before the last one's."""
        self._begun = self._begun or time
        self._number += 1
        entry = Insertion(self._number, _float32(score), int(time) // _MINUTE)
        self._journal.append(entry)
        if len(self._journal) > MOST_JOURNAL:
            given_up = self._journal.popleft()
            self._lacking.update(
                each for each in _names(given_up.minute) if not self._has(each, given_up)
            )
        self._put(entry, self._names(entry.minute))

    def clear(self) -> None:
        """Begin again: what was inserted so far is forgotten, stored strata too."""
        self._strata.clear()
        self._journal.clear()
        self._lacking.clear()
        self._counts = [0, 0, 0]
        self._begun = 0.0

    def state(self) -> HistoryState:
        count = len(self._journal)
        scores = struct.pack(f"<{count}f", *(each.score for each in self._journal))
        minutes = struct.pack(f"<{count}I", *(each.minute for each in self._journal))
        return HistoryState(begun=self._begun, number=self._number, journal=scores + minutes)

    def due(self) -> dict[int, bytes]:
        """By name, the strata to be written right after the small state, so that the journal can be cut."""
        old = list(self._journal)[: max(0, len(self._journal) - self._limits.journal)]
        names = {name for each in old for name in _names(each.minute) if not self._has(name, each)}
        names |= self._lacking
        return {name: self._strata[name].pack(self._begun) for name in sorted(names)}

    def written(self, strata: Mapping[int, bytes]) -> None:
        """These, as `due` gave them, are stored, and so is the small state before them."""
        for name, packed in strata.items():
            begun, number = Stratum.head(packed)
            if begun == self._begun and name in self._strata:
                self._strata[name].written = max(number, self._strata[name].written)
                self._lacking.discard(name)
        journal = self._journal
        while journal and all(self._has(name, journal[0]) for name in _names(journal[0].minute)):
            journal.popleft()

    def _names(self, minute: int) -> tuple[int, int, int]:
        if minute != self._named[0]:
            self._named = (minute, _names(minute))
        return self._named[1]

    def _has(self, name: int, entry: Insertion) -> bool:
        return self._strata[name].written >= entry.number

    def _put(self, entry: Insertion, names: tuple[int, int, int]) -> None:
        self._forget_old(names, entry.minute)
        for level, name in enumerate(names):
            stratum = self._strata.get(name)
            if stratum is None:
                stratum = self._strata[name] = Stratum()
            if entry.number > stratum.number:
                gone = stratum.insert(entry, self._newest[level])
                self._counts[level] += 1 - gone

    def _forget_old(self, names: tuple[int, int, int], minute: int) -> None:
        if minute == self._forgot_at:
            return
        self._forgot_at = minute
        for level, name in enumerate(names):
            stratum = self._strata.get(name)
            if stratum is not None:
                self._counts[level] -= stratum.expire(minute - self._oldest[level])


def _names(minute: int) -> tuple[int, int, int]:
    """The strata of a minute since 1970, by level."""
    days, hour = divmod(minute // 60, 24)
    day = days % 7
    hours = WEEKEND_HOURS if day in WEEKEND else HOURS
    return (0, hours + hour, WEEK + day * 24 + hour)


def _is_name(number: int) -> bool:
    return 0 <= number <= HOURS + 23 or WEEKEND_HOURS <= number < STRATA


def _float32(score: float) -> float:
    return _FLOAT.unpack(_FLOAT.pack(score))[0]


def _insertions(state: HistoryState) -> list[Insertion]:
    count, rest = divmod(len(state.journal), 8)
    if rest or count > state.number:
        raise ValueError("not a journal of insertions")
    scores = struct.unpack_from(f"<{count}f", state.journal)
    minutes = struct.unpack_from(f"<{count}I", state.journal, 4 * count)
    first = state.number - count + 1
    return [Insertion(first + n, *each) for n, each in enumerate(zip(scores, minutes, strict=True))]
