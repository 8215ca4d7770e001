"""The comparison of one label set with its own past: scores that settle, then enter once. Pure."""

from collections.abc import Iterable, Iterator
from typing import Literal

from collector.log.state_table import Parts
from collector.records.standing import LookedAt
from collector.records.windows import DriftState, SettlingScore
from collector.watch.comparisons import Comparison
from collector.watch.entered import Entered
from collector.watch.settling import Settling, Update, digest_of
from collector.watch.windows.target import Labels
from evaluators.formulas.drift import Change
from evaluators.formulas.own_history import OTHER
from evaluators.formulas.own_past import OwnPast
from evaluators.formulas.past_limits import PastLimits

MOST = 64  # points: at most 600 bytes in the stored state
AGE = 30 * 86_400  # seconds of log time that are remembered
STEPS = 1_000  # progress is kept in steps of 1 / STEPS


class Trail:
    """Points (log time in whole seconds, progress in steps), oldest first; each is the most since the one before."""

    def __init__(self, points: Iterable[tuple[int, int]] = ()) -> None:
        self._points = [*points]

    def note(self, time: float, progress: float) -> None:
        """A score has entered at this log time, which is never before an earlier one's."""
        points = self._points
        at, step = int(time), round(STEPS * progress)
        if points and points[-1][0] >= at:
            points[-1] = (points[-1][0], max(step, points[-1][1]))
            return
        points.append((at, step))
        while points[0][0] < at - AGE:
            del points[0]
        if len(points) > MOST:
            self._merge_one()

    @property
    def packed(self) -> tuple[tuple[int, int], ...]:
        return tuple(self._points)

    def _merge_one(self) -> None:
        """Two neighbours become one where that is least beside their age: an hour counts less a week ago than today."""
        points, now = self._points, self._points[-1][0] + 1
        spans = [
            (points[at + 1][0] - points[at - 1][0]) / (now - points[at - 1][0])
            for at in range(1, len(points) - 1)
        ]
        at = 1 + spans.index(min(spans))
        points[at : at + 2] = [(points[at + 1][0], max(points[at][1], points[at + 1][1]))]


BOTH = frozenset({"work_baseline"})
"""Evaluators whose scores should neither fall nor rise: what an agent gives up early is less work."""
TICKETS = frozenset({"work_baseline", "task_agreement"})
"""Session evaluators whose falls never wake anybody."""
_DIGESTS = 2**64  # a digest as a number below 1 breaks the ties between equal scores


class DriftDetector(Comparison):
    ENTERED = OTHER

    def __init__(
        self,
        labels: Labels,
        limits: PastLimits,
        state: DriftState | None = None,
        parts: Parts | None = None,
    ) -> None:
        """`state` and `parts` as they were stored; a part may be older than the state, or missing.

        Raises ValueError: they were not.
        """
        parts = dict(parts or {})
        self.labels = labels
        entered = parts.pop(self.ENTERED, b"")
        self.settling: Settling[SettlingScore] = (
            Settling()
            if state is None
            else Settling(
                state.settling,
                state.next_offsets,
                Entered(state.entered, state.newest, entered),
            )
        )
        self.past = OwnPast(limits, state.past if state else None, parts)
        self.trail = Trail(state.trail if state else ())
        self.looked_at: LookedAt | None = (
            None  # of the fall that stands, while its cause is not known
        )

    # --- scores ------------------------------------------------------------------------------------------------------

    def offer(self, update: Update, score: float, *, due: float, version: str) -> bool | None:
        """Take in the latest score of a subject, which has settled at log time `due`; as `Settling.offer`."""
        held = SettlingScore(update.subject, due, *update.rank, score, version, update.seen)
        return self.settling.offer(update, held)

    def entering(self, passed: float) -> Iterator[None]:
        """Let the scores enter that have settled before log time `passed`, one with each step."""
        for each in self.settling.entering(passed):
            due, subject = each.due, each.subject
            tie = digest_of(subject) / _DIGESTS
            self.past.feed(subject, each.score, due, each.version, seen=each.seen or due, tie=tie)
            self.trail.note(due, self.progress)
            yield

    def expire(self, now: float) -> bool:
        """End alarms that are old at log time `now`; whether there was one."""
        return self.past.expire(now)

    def alarms(self) -> Iterator[tuple[Literal["worse", "better"], Change]]:
        if self.past.worse is not None:
            yield "worse", self.past.worse
        if self.past.better is not None:
            yield "better", self.past.better

    @property
    def alarm(self) -> Change | None:
        """The alarm that gauges show: a drop, or for evaluators in `BOTH` a rise too; None while it is young."""
        if self.labels.evaluator not in BOTH:
            return self.past.worse
        return None if self.past.is_young else self.past.worse or self.past.better

    @property
    def pages(self) -> bool:
        """Whether a strong fall of its scores wakes somebody: those of sessions, how much work it was apart."""
        return self.labels.scope == "session" and self.labels.evaluator not in TICKETS

    @property
    def is_strong(self) -> bool:
        return self.pages and self.past.is_strong

    @property
    def progress(self) -> float:
        """How near such an alarm is, 0 to 1."""
        better = self.past.better_progress if self.labels.evaluator in BOTH else 0.0
        return max(self.past.progress, better)

    # --- storing -----------------------------------------------------------------------------------------------------

    def state(self) -> DriftState:
        """What is stored of it, as it must be written before the parts that are `due`."""
        return DriftState(
            past=self.past.state(),
            settling=self.settling.held,
            next_offsets=self.settling.next_offsets,
            entered=self.settling.entered.count,
            newest=self.settling.entered.newest,
            trail=self.trail.packed,
        )

    def due(self) -> dict[int, bytes]:
        return self.past.due() | super().due()

    def written(self, parts: Parts) -> None:
        super().written(parts)
        self.past.written({name: each for name, each in parts.items() if name != self.ENTERED})
