"""Does a tool, or do an agent's model calls, fail more often than they did? One watch, fed use by use. Pure.

A use is a session's; it failed or it did not. The watch compares each use with an upper bound on the rate of failure in
its past, by three likelihood ratios (failures twice, 8 and 64 times as likely as before). While the true rate is below
that bound each of them raises an alarm at most once in e^16 uses, on average.

Failures come in clumps: after a use that failed the next one fails more often, and a detector that takes uses for
independent raises false alarms then. So there are two pasts, one of uses after a use that did not fail, one of uses
after one that failed. While a sum is above 0, uses wait outside the past: what may be a fault is not learned.

Source: Spanwise, measured on recordings with known faults (docs/alerting.md).
"""

from collections.abc import Sequence
from itertools import pairwise
from math import log, sqrt
from typing import Literal, NamedTuple, Self

import msgspec

from evaluators.formulas.recent_uses import Bucket, RecentUses

FaultKind = Literal[
    "server_failed",
    "tool_failed",
    "tool_empty",
    "repeated_calls",
    "model_failed",
    "tool_slow",
    "no_answer",
    "gave_up",
    "answer_cut",
    "answer_blocked",
    "cancelled",
]
"""What a fault watch looks at; `server_failed`: what tools of one server that fail together are."""
Cause = tuple[FaultKind, str]
"""(fault, tool) of what explains that scores dropped; the tool is empty for a fault of the agent."""
FaultEvent = Literal["raised", "over"]

RATIOS = (2.0, 8.0, 64.0)
"""How many times as likely as before a failure is under each of the sums' hypotheses."""
_LOGS = tuple(map(log, RATIOS))
LIMIT = 16.0
"""Of a sum: an alarm at most once in e^16 uses while the rate of failure stays below the bound."""
LIMIT_OF_PEOPLE = 11.0
"""Of the sum for twice the rate, where people decide what fails: there is one such watch an agent.

The other sums keep theirs: at a lower one clumps raise three times the false alarms, and no doubling is seen sooner.
"""
LEAST = 20  # uses in the past below which nothing is compared
MOST = 8000
"""Uses in the past at which all counts are halved, so that the past follows slow changes."""
FEW = 3  # failures below which nothing is explained by them
EXPLAINS = 16.0  # evidence from which a fault explains that scores dropped
NEW = 6.0
"""Evidence, of uses after one that did not fail alone, from which what never failed before is a fault.

It is asked once, until the first failure is learned, so that e^6 does for it what e^16 does for every use: at most .05
false alarms for ten tools in 28,800 sessions (none to two in 400 streams of a month, of which .1 to 10 % failed,
independently or in clumps of mean 2 or 3). From 40 uses without failure, half of which then fail, it is named after 8
failures (92 % of 1,000 within 15), instead of 34.
"""
MANY = 6  # failures below which nothing is new
OVER = log(100_000.0)  # evidence at which a fault is over
NEW_NORMAL = 7 * 86400.0
"""Seconds after which a fault that is still raised is the new normal, and the past starts over."""


class UseCounts(msgspec.Struct, array_like=True):
    """Uses and failures, after a use that did not fail (`n0`, `f0`) and after one that failed."""

    n0: float = 0.0
    f0: float = 0.0
    n1: float = 0.0
    f1: float = 0.0

    @property
    def uses(self) -> float:
        return self.n0 + self.n1

    @property
    def failures(self) -> float:
        return self.f0 + self.f1


class SessionCounts(msgspec.Struct, array_like=True):
    """Sessions that used what is watched, and those of them in which it failed, each once."""

    uses: int = 0
    failures: int = 0


class EarlierUse(NamedTuple):
    """The use before, of the same session."""

    seen: int  # log time in whole seconds
    failed: bool


class RatioSum(msgspec.Struct, array_like=True):
    """One sum, and what was used since it was 0."""

    total: float = 0.0
    since: float = 0.0
    uses: int = 0
    failures: int = 0
    uses_before: int = 0
    failures_before: int = 0
    tries: int = 0  # uses after a use that did not fail
    times: int = 0  # that one of them failed


class FaultAlarm(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An alarm that is not over; sessions and failed ones since it began, and before it, each once."""

    began: float  # log time at which it was raised
    since: float  # when the first use of it was seen
    uses: int  # since then
    failures: int
    before: float  # upper bound on the rate of failure in the past
    rate: float  # rate of failure at the raise, never below twice the odds of `before`; fixed
    over: float = 0.0  # evidence that the rate is `before` again
    uses_before: int = 0
    failures_before: int = 0


class FaultState(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is stored of a watch; about 130 bytes."""

    past: UseCounts = msgspec.field(default_factory=UseCounts)
    waiting: UseCounts = msgspec.field(default_factory=UseCounts)  # not in the past yet
    has_failed: bool = False  # whether the newest use failed
    sums: list[RatioSum] = msgspec.field(default_factory=lambda: [RatioSum() for _ in RATIOS])
    fault: FaultAlarm | None = None
    recent: list[Bucket] = []  # all uses, also while the fault is raised
    sessions: SessionCounts = msgspec.field(default_factory=SessionCounts)
    """While no fault is raised."""


class FaultWatch:
    """One (fault, tool) of an agent."""

    def __init__(self, state: FaultState | None = None, *, of_people: bool = False) -> None:
        """The state is the object's from now on.

        `of_people`: people decide what fails, each by himself, as when they stop a run. So uses after a failure wait
        for the sum for twice the rate, too, whose limit is lower: what is looked for is a rate that doubles.
        """
        self.state = state or FaultState()
        self._of_people = of_people
        self._limits = (LIMIT_OF_PEOPLE if of_people else LIMIT, LIMIT, LIMIT)
        self._recent = RecentUses(self.state.recent)
        self.state.recent = self._recent.buckets

    def feed(
        self, failed: bool, seen: float, now: float, earlier: EarlierUse | None = None
    ) -> FaultEvent | None:
        """Take in a use, in the order in which uses enter; returns what changed.

        `seen`: log time at which its newest span was first seen; `now`: log time at which it enters; `earlier`: the use
        before of the same session, which is counted once.
        """
        self._recent.add(seen, failed=failed)
        if self.state.fault is not None:
            self.expire(now)
        state = self.state
        if state.fault is not None:
            return self._follow(state.fault, failed, earlier)
        # A use that did not fail leaves sums at 0 where they are: nearly every use is one.
        if (failed or not self.is_quiet) and state.past.uses >= LEAST:
            raised = self._search(failed, seen, earlier)
            if raised is not None:
                state.fault = self._raise(raised, now)
                return "raised"
        self._learn(failed)
        _count(state.sessions, failed, earlier)
        return None

    def expire(self, now: float) -> bool:
        """End a fault that is old at log time `now`: what is now is normal, and the past starts over."""
        fault = self.state.fault
        if fault is None or now - fault.began < NEW_NORMAL:
            return False
        self.state = FaultState(recent=self._recent.buckets)
        return True

    @property
    def learned(self) -> tuple[float, float]:
        past, waiting = self.state.past, self.state.waiting
        return past.uses + waiting.uses, past.failures + waiting.failures

    @property
    def is_quiet(self) -> bool:
        """Whether nothing speaks for a fault: none is raised, and every sum is 0."""
        one, two, three = self.state.sums
        return self.state.fault is None and not (one.total or two.total or three.total)

    def evidence(self, since: float) -> float:
        """How strongly failures since log time `since` speak against the rate of the past: a log-likelihood ratio.

        0: they do not, the past is too short, or there are less than FEW of them.
        """
        uses, failures = self._recent.since(since)
        return evidence(uses, failures, *self._before)

    def used_since(self, since: float) -> tuple[int, int]:
        """Uses since log time `since`, and how many of them failed; of many uses, about."""
        return self._recent.since(since)

    @property
    def _before(self) -> tuple[float, float]:
        """Uses and failures before and beside what may be a fault."""
        found = self.state.fault or self.state.sums[0]
        if isinstance(found, FaultAlarm) or found.total:
            return found.uses_before, found.failures_before
        return self.state.past.uses, self.state.past.failures

    def _search(self, failed: bool, seen: float, earlier: EarlierUse | None) -> RatioSum | None:
        """Let the sums take in a use; of those that reach the limit, the one with the highest rate of failure."""
        past = self.state.past
        # Uses after a failure are few: as many as LEAST without a failure are assumed among them.
        after_failure = (past.f1, past.n1 + LEAST)
        before = upper_rate(*(after_failure if self.state.has_failed else (past.f0, past.n0)))
        raised: list[RatioSum] = []
        known = self.state.sessions
        for place, (ratio, step_of_failure) in enumerate(zip(RATIOS, _LOGS, strict=True)):
            each, limit = self.state.sums[place], self._limits[place]
            if each.total == 0:  # it leaves 0 with this use, if the use failed
                each = RatioSum(0.0, seen, 0, 0, known.uses, known.failures)
                self.state.sums[place] = each
            _count(each, failed, earlier, each.since)
            each.tries += not self.state.has_failed
            each.times += failed and not self.state.has_failed
            step = (step_of_failure if failed else 0.0) - log(1 + before * (ratio - 1))
            each.total = min(limit, max(0.0, each.total + step))
            if each.total >= limit:
                raised.append(each)
        if not raised and failed and _is_new(self.state.sums[0]):
            return self.state.sums[0]
        return max(raised, key=lambda each: each.failures / each.uses, default=None)

    def _raise(self, raised: RatioSum, now: float) -> FaultAlarm:
        past = self.state.past
        before = upper_rate(past.failures, past.uses)
        rate = max((raised.failures + 1) / (raised.uses + 2), 2 * before / (1 + before))
        self.state.waiting = UseCounts()
        return FaultAlarm(
            began=now,
            since=raised.since,
            uses=raised.uses,
            failures=raised.failures,
            before=before,
            rate=min(0.999, rate),
            uses_before=raised.uses_before,
            failures_before=raised.failures_before,
        )

    def _follow(
        self, fault: FaultAlarm, failed: bool, earlier: EarlierUse | None
    ) -> FaultEvent | None:
        """A use while the fault is raised: nothing is learned."""
        _count(fault, failed, earlier, fault.since)
        odds = fault.before / fault.rate if failed else (1 - fault.before) / (1 - fault.rate)
        fault.over = max(0.0, fault.over + log(odds))
        if fault.over < OVER:
            return None
        state = self.state
        self.state = FaultState(
            past=state.past, recent=self._recent.buckets, sessions=state.sessions
        )
        return "over"

    def _learn(self, failed: bool) -> None:
        state = self.state
        past, waiting = state.past, state.waiting
        if state.has_failed:
            waiting.n1 += 1
            waiting.f1 += failed
        else:
            waiting.n0 += 1
            waiting.f0 += failed
        if state.sums[0].total == 0 and waiting.n0:
            past.n0 += waiting.n0
            past.f0 += waiting.f0
            waiting.n0 = waiting.f0 = 0.0
        waits = self._of_people and state.sums[0].total > 0
        if not failed and waiting.n1 and not waits:
            past.n1 += waiting.n1
            past.f1 += waiting.f1
            waiting.n1 = waiting.f1 = 0.0
        if past.n0 + past.n1 >= MOST:
            state.past = UseCounts(past.n0 / 2, past.f0 / 2, past.n1 / 2, past.f1 / 2)
            sessions = state.sessions
            state.sessions = SessionCounts(sessions.uses // 2, sessions.failures // 2)
        state.has_failed = failed


def _is_new(each: RatioSum) -> bool:
    """Whether what never failed before fails again and again.

    Failures right after another one are left out: without any in the past, it is not known how long a clump is.
    """
    if each.failures_before or each.failures < MANY:
        return False
    return evidence(each.tries, each.times, each.uses_before, 0) >= NEW


def _count(
    counts: SessionCounts | RatioSum | FaultAlarm,
    failed: bool,
    earlier: EarlierUse | None,
    since: float = 0.0,
) -> None:
    """Count a use that is not before `since`, and its session once."""
    is_known = earlier is not None and earlier.seen >= int(since)
    counts.uses += not is_known
    counts.failures += failed and not (is_known and earlier is not None and earlier.failed)


def evidence(uses: float, failures: float, uses_before: float, failures_before: float) -> float:
    """How strongly the failures speak against the rate of before: a log-likelihood ratio.

    0: they do not, there were less than LEAST uses before, or there are less than FEW failures.
    """
    if uses_before < LEAST or failures < FEW:
        return 0.0
    return _against(uses, failures, upper_rate(failures_before, uses_before))


class Counts(NamedTuple):
    """Sessions that used a tool, each once, and those of them in which it failed."""

    uses: int = 0
    failures: int = 0
    after: int = 0  # sessions right after one in which it failed
    again: int = 0  # those of them in which it failed too

    @classmethod
    def of(cls, failed: Sequence[bool]) -> Self:
        """The sessions in the order in which they came."""
        again = sum(one and other for one, other in pairwise(failed))
        return cls(len(failed), sum(failed), sum(failed[:-1]), again)


CLUMP = 8
"""Sessions after a failed one, none of which failed, that are assumed before.

The more there are, the sooner a release fails, and so does one in which nothing
changed: docs/release-verdicts.md.
"""


def evidence_between(since: Counts, before: Counts) -> float:
    """As `evidence`, of two versions: a failure right after another one speaks for less, as failures come in clumps."""
    alone = evidence(since.uses, since.failures, before.uses, before.failures)
    if alone == 0.0:
        return 0.0
    first = upper_rate(before.failures - before.again, before.uses - before.after)
    again = upper_rate(before.again, before.after + CLUMP)
    clumped = _against(since.uses - since.after, since.failures - since.again, first)
    return min(alone, clumped + _against(since.after, since.again, again))


def _against(uses: float, failures: float, before: float) -> float:
    """How strongly they speak against this rate of before."""
    if not uses or failures / uses <= before:
        return 0.0
    rate = failures / uses
    spared = (1 - rate) * log((1 - rate) / (1 - before)) if rate < 1 else 0.0
    return uses * (rate * log(rate / before) + spared)


def upper_rate(failures: float, uses: float) -> float:
    """Upper bound on a rate of failure: Wilson's, at two standard deviations. 1 without any use."""
    if not uses:
        return 1.0
    spread = sqrt(failures * (uses - failures) / uses + 1)
    return (failures + 2 + 2 * spread) / (uses + 4)
