"""The comparison of one label set with its own past: scores that settle, then enter once. Pure."""

from collections.abc import Iterable, Iterator
from typing import Literal

from collector.log.state_table import Parts
from collector.records.standing import Drop, LookedAt, WatchedScores
from collector.records.windows import DriftState, SettlingScore
from collector.watch.comparisons import Comparison
from collector.watch.entered import Entered
from collector.watch.second_opinions import NearAlarm
from collector.watch.settling import Settling, Update
from collector.watch.windows.target import Labels
from evaluators.formulas.drift import Change
from evaluators.formulas.own_history import OTHER
from evaluators.formulas.own_past import OwnPast
from evaluators.formulas.past_limits import PastLimits
from evaluators.model import Scope

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
        self._least = limits.least
        self.past = OwnPast(limits, state.past if state else None, parts)
        self.trail = Trail(state.trail if state else ())
        self.looked_at: LookedAt | None = None
        """Of the present fall, while its cause is not known."""

    def offer(self, update: Update, score: float, *, due: float, version: str) -> bool | None:
        """Take in the latest score of a subject, which has settled at log time `due`; as `Settling.offer`."""
        held = SettlingScore(update.subject, due, *update.rank, score, version, update.seen)
        return self.settling.offer(update, held)

    def entering(self, passed: float) -> Iterator[None]:
        """Let the scores enter that have settled before log time `passed`, one with each step."""
        for each in self.settling.entering(passed):
            self.past.feed(each.subject, each.score, each.due, each.version, seen=each.seen)
            self.trail.note(each.due, self.progress)
            yield

    def expire(self, now: float) -> bool:
        return self.past.expire(now)

    def drops(self) -> Iterator[Drop]:
        """Its alarms."""
        alarms: dict[Literal["worse", "better"], Change | None]
        alarms = {"worse": self.past.worse, "better": self.past.better}
        for direction, alarm in alarms.items():
            if alarm is not None:
                is_worse = direction == "worse"
                yield Drop(
                    evaluator=self.labels.evaluator,
                    scope=self.scope,
                    direction=direction,
                    since=alarm.since,
                    mean_rank=alarm.mean_rank,
                    sessions=alarm.sessions,
                    strong=is_worse and self.is_strong,
                    cause=self.past.cause if is_worse else None,
                    looked_at=self.looked_at if is_worse else None,
                )

    def near_alarm(self) -> NearAlarm:
        alarm = self.alarm
        return NearAlarm(
            evaluator=f"{self.labels.evaluator}/{self.labels.scope}",
            progress=self.progress,
            entered=self.settling.entered.count,
            since=None if alarm is None else alarm.since,
        )

    def watched(self) -> WatchedScores:
        return WatchedScores(
            evaluator=self.labels.evaluator,
            scope=self.scope,
            progress=self.progress if self.is_compared else None,
            samples=self.past.history_samples,
            trail=self.trail.packed,
        )

    @property
    def scope(self) -> Scope:
        return "trace" if self.labels.scope == "trace" else "session"

    @property
    def is_compared(self) -> bool:
        return self.alarm is not None or self.past.history_samples >= self._least

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
