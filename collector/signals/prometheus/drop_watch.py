"""The comparison of one label set with its own past: scores that settle, then enter once. Pure.

The state is a function of the records of `signals` and of how far log time has passed, never of how partitions
interleave: a score enters at the log time at which it has settled, in the order of (that time, subject), and what
comes later changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from math import inf
from typing import Literal, NamedTuple

from collector.log.port import Position
from collector.records.codec import encode
from collector.records.drops import DropState, SettlingScore
from collector.signals.prometheus.entered import Entered
from collector.signals.prometheus.target import Labels
from evaluators.formulas.drop import Change
from evaluators.formulas.own_history import STRATA
from evaluators.formulas.own_past import OwnPast
from evaluators.formulas.past_limits import PastLimits

MAX_SETTLING = 4096
"""Subjects of a label set that may settle at the same time."""


class Update(NamedTuple):
    """A record of `signals` about a subject (session or trace)."""

    subject: str
    digest: int
    rank: tuple[int, bool]
    """As `SettlingScore.rank`."""
    time: float
    """The record's log time."""
    position: Position


class DropWatch:
    """One label set."""

    def __init__(
        self,
        labels: Labels,
        limits: PastLimits,
        state: DropState | None = None,
        parts: Mapping[int, bytes] | None = None,
    ) -> None:
        """`state` and `parts` as they were stored; a part may be older than the state, or missing.

        Raises:
            ValueError: they were not.
        """
        parts = dict(parts or {})
        self.labels = labels
        self.parts = set(parts)
        """Names of the parts that are stored."""
        self._settling = {each.subject: each for each in state.settling} if state else {}
        self._next_offsets = dict(state.next_offsets) if state else {}
        entered = parts.pop(STRATA, b"")
        self._entered = Entered(
            state.entered if state else 0, state.newest if state else b"", entered
        )
        self.past = OwnPast(limits, state.past if state else None, parts)
        self._next_due = min((each.due for each in self._settling.values()), default=inf)
        """No score settles before."""

    # --- scores ------------------------------------------------------------------------------------------------------

    def is_decided(self, update: Update) -> bool:
        """Whether the update comes too late: its subject has entered or settled, or a later score of it is here."""
        held = self._settling.get(update.subject)
        if held is not None:
            return held.due <= update.time or update.rank <= held.rank
        return update.digest in self._entered

    def offer(self, update: Update, score: float, *, due: float, version: str) -> bool | None:
        """Take in the latest score of a subject, which has settled at log time `due`.

        Returns whether it was new; None: too many settle at once, and it is left out.
        """
        subject = update.subject
        if self._has_read(update.position):
            return False
        if subject not in self._settling and len(self._settling) >= MAX_SETTLING:
            return None
        self._mark_read(update.position)
        self._settling[subject] = SettlingScore(subject, due, *update.rank, score, version)
        self._next_due = min(self._next_due, due)
        return True

    def withdraw(self, update: Update) -> bool:
        """The subject's latest score is another agent's, or missing; whether one was here that has not settled."""
        if update.subject not in self._settling or self.is_decided(update):
            return False
        if self._has_read(update.position):
            return False
        self._mark_read(update.position)
        del self._settling[update.subject]
        return True

    def advance(self, passed: float) -> bool:
        """Let the scores enter that have settled before log time `passed`, which every partition has reached.

        Returns whether there were any. None can still change: a record that comes has `passed` or a later time.
        """
        if self._next_due >= passed:
            return False
        due = [each for each in self._settling.values() if each.due < passed]
        for each in sorted(due, key=lambda each: (each.due, each.subject)):
            del self._settling[each.subject]
            self._entered.add(digest_of(each.subject))
            self.past.feed(each.subject, each.score, each.due, each.version)
        self._next_due = min((each.due for each in self._settling.values()), default=inf)
        return bool(due)

    def alarms(self) -> Iterator[tuple[Literal["worse", "better"], Change]]:
        """What is raised now."""
        if self.past.worse is not None:
            yield "worse", self.past.worse
        if self.past.better is not None:
            yield "better", self.past.better

    # --- storing -----------------------------------------------------------------------------------------------------

    def encode(self) -> bytes:
        """The state, as it must be written before the parts that are `due`."""
        return encode(
            DropState(
                labels=self.labels,
                past=self.past.state(),
                settling=tuple(self._settling.values()),
                next_offsets=self._next_offsets,
                entered=self._entered.count,
                newest=self._entered.newest,
            )
        )

    def due(self) -> dict[int, bytes]:
        """By name, the parts that must be written now, so that the state stays small."""
        entered = self._entered.due()
        return self.past.due() | ({} if entered is None else {STRATA: entered})

    def written(self, parts: Mapping[int, bytes]) -> None:
        """The state, and after it these parts as `due` gave them, are stored."""
        self.parts |= parts.keys()
        self.past.written({name: each for name, each in parts.items() if name != STRATA})
        if STRATA in parts:
            self._entered.written(parts[STRATA])

    def _has_read(self, position: Position) -> bool:
        """Whether the record was taken in before, perhaps before a restart."""
        return position.offset < self._next_offsets.get(position.partition, 0)

    def _mark_read(self, position: Position) -> None:
        self._next_offsets[position.partition] = position.offset + 1


def digest_of(subject: str) -> int:
    """The number of 64 bits by which it is remembered that a subject has entered."""
    return int.from_bytes(hashlib.sha256(subject.encode(errors="replace")).digest()[:8])
