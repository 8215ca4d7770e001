"""The comparison of a label set's scores with its own past: did it get worse than it was, or better? Pure.

Each score is ranked among earlier scores of like times, then inserted there; the ranks are searched for falls and for
rises. From an alarm in either direction until its end nothing is inserted or forgotten, so that what follows is
compared with what was before. An alarm ends when the mean rank is normal again, over the newest scores or over those
of a version that the change cannot come from; or when it is old: what is now is the new normal then, and the history
begins again. Memory: that of the history, and at most 20 kB.
"""

import hashlib
from collections.abc import Mapping

import msgspec

from evaluators.formulas.drift import MIDDLE, Alarm, Change, Falls, Sum
from evaluators.formulas.fault_watch import Cause
from evaluators.formulas.own_history import HistoryState, OwnHistory
from evaluators.formulas.past_limits import PastLimits


class PastState(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is written after each batch of scores; at most 8 kB."""

    history: HistoryState = msgspec.field(default_factory=HistoryState)
    worse: Falls = msgspec.field(default_factory=Falls)
    better: Falls = msgspec.field(default_factory=Falls)  # it is fed 1 - rank
    time: float = 0.0  # of the newest score
    ranked: int = 0  # scores that were ranked so far
    versions: dict[str, int] = {}
    """By version, the number of its newest ranked score; the version that was seen last is at the end."""


class OwnPast:
    """One label set."""

    def __init__(
        self,
        limits: PastLimits | None = None,
        state: PastState | None = None,
        strata: Mapping[int, bytes] | None = None,
    ) -> None:
        """`state` and `strata` as they were stored; a stratum may be older than the state (`own_history`).

        The state is the object's from here on. Raises ValueError: they are not what was stored.
        """
        self._limits = limits or PastLimits()
        self._state = state or PastState()
        self._history = OwnHistory(self._limits, self._state.history, strata)

    def feed(
        self,
        session: str,
        score: float,
        time: float,
        version: str,
        *,
        seen: float | None = None,
    ) -> None:
        """Take in the score of a session (or trace) that was not fed before.

        `session` orders equal scores. `score` is in [0, 1], higher is better. `time` is log time in seconds; one older
        than the newest counts as the newest. `version` is that of the agent, "" when it is not known. `seen`: log time
        at which the session's newest span was first seen, which a change begins with; by default `time`.
        """
        state = self._state
        seen = time if seen is None else seen
        time = state.time = max(time, state.time)
        self.expire(time)
        frozen = state.worse.alarm is not None or state.better.alarm is not None
        rank = self._history.rank(score, tie_break(session), time, frozen=frozen)
        middle = self._history.rank(score, MIDDLE, time, frozen=True)
        if not frozen:
            self._history.insert(score, time)
        if rank is None or middle is None:
            return
        state.ranked += 1
        state.worse.feed(rank, seen, version, self._limits, is_worse=middle < MIDDLE)
        state.better.feed(1 - rank, seen, version, self._limits, is_worse=middle > MIDDLE)
        state.versions.pop(version, None)
        state.versions[version] = state.ranked
        if len(state.versions) > self._limits.versions:
            del state.versions[next(iter(state.versions))]
        for falls in (state.worse, state.better):
            raised = falls.raised(self._limits)
            if raised is not None:
                falls.alarm = self._alarm(raised, falls.sums[-1].total)

    def expire(self, now: float) -> bool:
        """End alarms that are old at log time `now`, and begin the history again; whether there was one."""
        state = self._state
        alarms = (state.worse.alarm, state.better.alarm)
        if alarms == (None, None):
            return False
        if not any(each and now - each.began >= self._limits.new_normal for each in alarms):
            return False
        self._history.clear()
        state.worse.clear()
        state.better.clear()
        return True

    @property
    def worse(self) -> Change | None:
        alarm = self._state.worse.alarm
        return None if alarm is None else _change(alarm, alarm.ranks / alarm.sessions)

    @property
    def better(self) -> Change | None:
        alarm = self._state.better.alarm
        return None if alarm is None else _change(alarm, 1 - alarm.ranks / alarm.sessions)

    @property
    def is_strong(self) -> bool:
        """Whether the fall `worse` is strong enough to wake somebody."""
        alarm, limits = self._state.worse.alarm, self._limits
        return alarm is not None and alarm.strong >= limits.strong * limits.limits[-1]

    def explain(self, cause: Cause) -> bool:
        """Name the (fault, tool) that explains the fall `worse`; whether that is news."""
        alarm = self._state.worse.alarm
        if alarm is None or alarm.cause == cause:
            return False
        alarm.cause = cause
        return True

    @property
    def cause(self) -> Cause | None:
        """What explains the fall `worse`, once anything did."""
        alarm = self._state.worse.alarm
        return None if alarm is None else alarm.cause

    def end_worse(self) -> None:
        self._state.worse.clear()

    @property
    def is_young(self) -> bool:
        return self._state.time - self._history.begun < self._limits.mark_age

    @property
    def progress(self) -> float:
        """How near the alarm `worse` is, 0 to 1; 1 while it is raised."""
        return self._state.worse.progress(self._limits)

    @property
    def better_progress(self) -> float:
        """How near the alarm `better` is, 0 to 1; 1 while it is raised."""
        return self._state.better.progress(self._limits)

    @property
    def history_samples(self) -> int:
        return self._history.samples

    def state(self) -> PastState:
        """What is to be written after a batch of scores, before the strata that are `due`; encode it at once."""
        self._state.history = self._history.state()
        return self._state

    def due(self) -> dict[int, bytes]:
        return self._history.due()

    def written(self, strata: Mapping[int, bytes]) -> None:
        """The state, and these strata as `due` gave them, are stored."""
        self._history.written(strata)

    def _alarm(self, raised: Sum, strong: float) -> Alarm:
        """Versions of the later half of the scores since the fall began are involved: a release replaces a version."""
        state = self._state
        first = state.ranked - raised.sessions // 2
        return Alarm(
            began=state.time,
            since=raised.since,
            sessions=raised.sessions,
            ranks=raised.ranks,
            involved=tuple(each for each, newest in state.versions.items() if newest >= first),
            strong=strong,
        )


def tie_break(session: str) -> float:
    """In [0, 1), uniform over sessions, and the same every time."""
    digest = hashlib.sha256(session.encode(errors="replace")).digest()
    return int.from_bytes(digest[:8]) / 2**64


def _change(alarm: Alarm, mean_rank: float) -> Change:
    return Change(alarm.began, alarm.since, alarm.sessions, mean_rank)
