"""The comparison of one label set with its own past: scores that settle, then enter once. Pure.

The state is a function of the records of `signals` and of how far log time has passed, never of how partitions
interleave: a score enters at the log time at which it has settled, in the order of (that time, subject), and what
comes later changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from heapq import heapify, heappop, heappush
from typing import Literal, NamedTuple

from collector.records.codec import encode
from collector.records.drops import DropState, SettlingScore
from collector.signals.prometheus.entered import Entered
from collector.signals.prometheus.target import Labels
from collector.signals.prometheus.trail import Trail
from evaluators.formulas.drop import Change
from evaluators.formulas.own_history import STRATA
from evaluators.formulas.own_past import OwnPast
from evaluators.formulas.past_limits import PastLimits

BOTH = frozenset({"work_baseline"})
"""Evaluators whose scores should neither fall nor rise: what an agent gives up early is less work."""
MAX_SETTLING = 4096
"""Subjects of a label set that may settle at the same time."""
FEW = 64
_DIGESTS = 2**64


class Update(NamedTuple):
    """A record of `signals` about a subject (session or trace)."""

    subject: str
    digest: int
    rank: tuple[int, bool]
    """As `SettlingScore.rank`."""
    time: float
    """The record's log time."""
    seen: float
    """Log time at which the subject's newest span was first seen."""
    partition: int
    offset: int


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
        self.trail = Trail(state.trail if state else ())
        self._dues: list[tuple[float, str]] = []
        """A heap of (log time, subject) at which scores settle, also of some that have changed or gone since."""
        self._note_dues()

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
        if self._has_read(update):
            return False
        if subject not in self._settling and len(self._settling) >= MAX_SETTLING:
            return None
        self._mark_read(update)
        self._settling[subject] = SettlingScore(
            subject, due, *update.rank, score, version, update.seen
        )
        if len(self._dues) > 2 * len(self._settling) + FEW:
            self._note_dues()
        else:
            heappush(self._dues, (due, subject))
        return True

    def withdraw(self, update: Update) -> bool:
        """The subject's latest score is another agent's, or missing; whether one was here that has not settled."""
        if update.subject not in self._settling or self.is_decided(update):
            return False
        if self._has_read(update):
            return False
        self._mark_read(update)
        del self._settling[update.subject]
        return True

    def entering(self, passed: float) -> Iterator[None]:
        """Let the scores enter that have settled before log time `passed`, which every partition has reached.

        One with each step. None can still change: a record that comes has `passed` or a later time.
        """
        dues, settling = self._dues, self._settling
        while dues and dues[0][0] < passed:
            due, subject = heappop(dues)
            each = settling.get(subject)
            if each is None or each.due != due:
                continue  # a later score took its place, or it was withdrawn
            del settling[subject]
            digest = digest_of(subject)
            self._entered.add(digest)
            seen, tie = each.seen or due, digest / _DIGESTS
            self.past.feed(subject, each.score, due, each.version, seen=seen, tie=tie)
            self.trail.note(due, self.progress)
            yield

    def alarms(self) -> Iterator[tuple[Literal["worse", "better"], Change]]:
        """What is raised now."""
        if self.past.worse is not None:
            yield "worse", self.past.worse
        if self.past.better is not None:
            yield "better", self.past.better

    @property
    def alarm(self) -> Change | None:
        """The alarm that gauges show, if one is raised: worse, or for BOTH in either direction."""
        return self.past.worse or (self.past.better if self.labels.evaluator in BOTH else None)

    @property
    def progress(self) -> float:
        """How near such an alarm is, 0 to 1."""
        better = self.past.better_progress if self.labels.evaluator in BOTH else 0.0
        return max(self.past.progress, better)

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
                trail=self.trail.packed,
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

    def _has_read(self, update: Update) -> bool:
        """Whether the record was taken in before, perhaps before a restart."""
        return update.offset < self._next_offsets.get(update.partition, 0)

    def _mark_read(self, update: Update) -> None:
        self._next_offsets[update.partition] = update.offset + 1

    def _note_dues(self) -> None:
        self._dues = [(each.due, each.subject) for each in self._settling.values()]
        heapify(self._dues)


@lru_cache(maxsize=4096)
def digest_of(subject: str) -> int:
    """The number of 64 bits by which it is remembered that a subject has entered."""
    return int.from_bytes(hashlib.sha256(subject.encode(errors="replace")).digest()[:8])
