"""What a judge says of a drop that other scores have raised: how it is stored, and how it is shown."""

import math
from collections.abc import Iterable
from statistics import NormalDist
from typing import Literal, TypeAlias

import msgspec

from evaluators.formulas.people_agreement import cohens_kappa
from evaluators.formulas.release_verdict import LOOKS, MARGIN, MIN_BASELINE, Look, Z
from evaluators.plan import Plan, is_third_party

Verdict: TypeAlias = Literal["confirmed", "not_confirmed", "undecided"]
VALUES = {"confirmed": 1, "not_confirmed": 0, "undecided": -1}
"""`spanwise_drop_second_opinion`."""


STRICT = NormalDist().inv_cdf(1 - 0.012 / len(LOOKS)) / Z
"""How much further than that of a release the bound lies by which a loss is confirmed.

It wakes somebody, so that at most 2 % of the drops in which nothing is lost may be confirmed. Bounds of .012 confirm .5
to 1.7 %: over 20 sessions their errors are estimated, and too small (docs/evidence.md).
"""


SHOWS = 0.4
"""Of the fall of the scores' mean rank, what the judge must rule out before it says that nothing is lost.

The worst of the published judges shows a third of it when the loss is real (docs/evidence.md).
"""
TO_CONFIRM, TO_CLEAR = 0.05, 0.5
"""Chances of either verdict after 160 sessions, below both of which no more are asked about.

A page is worth a chance of one in twenty, silence one in two. Where nothing is lost, 58 to 73 sessions are asked about
then instead of 126 to 145; at most 3 of 100 losses are confirmed no longer (docs/evidence.md).
"""


def verdict_of(looks: Iterable[Look], fall: float | None) -> Verdict:
    """The verdict of the first look that decides; `release_verdict` says what a look is.

    `fall`: of the mean rank of the scores that dropped; None: the drop does not stand, and nothing can be ruled out.
    """
    for each in looks:
        if each.rank + STRICT * (each.upper - each.rank) < 0.5:
            return "confirmed"
        if each.lower > _least(fall):
            return "not_confirmed"
    return "undecided"


def is_worth_more(look: Look, before: int, fall: float | None) -> bool:
    """Whether the last look may decide, if the judge's scores go on as they were up to this one.

    `before`: scores from before the drop, on which the look's bounds rest, too.
    """
    last = LOOKS[-1]
    error = max(look.upper - look.rank, look.rank - look.lower) / Z  # a bound ends at 0 and 1
    variance = error**2 / (1 / look.sessions + 1 / before)  # of one session
    spread = math.sqrt(variance * (1 / look.sessions - 1 / last))
    if not spread:
        return False
    ahead = NormalDist(look.rank, spread)
    bound = Z * math.sqrt(variance * (1 / last + 1 / before))
    return (
        ahead.cdf(0.5 - STRICT * bound) >= TO_CONFIRM
        or 1 - ahead.cdf(_least(fall) + bound) >= TO_CLEAR
    )


def _least(fall: float | None) -> float:
    """The rank above which nothing is lost."""
    return 1.0 if fall is None else 0.5 - min(MARGIN, SHOWS * fall)


class JudgedSession(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A session's newest judged score. Stored by order: append only."""

    session: int  # a digest of its id
    time: float  # log time at which the newest span that was judged arrived
    score: float
    version: str
    again: tuple[bool, bool] | None = None  # whether it passed, at first and when asked once more


PAIRS, AGREES = 20, 0.2
"""Sessions asked about twice from which Cohen's kappa counts; the kappa below which answers are near chance."""


def contradicts(judged: Iterable[JudgedSession]) -> bool:
    """Whether the judge, asked twice about some of these sessions, does not agree with itself."""
    pairs = [each.again for each in judged if each.again is not None]
    return len(pairs) >= PAIRS and cohens_kappa(pairs) < AGREES


class AskedOpinion(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The question about one drop. `before`: scores before the drop, sorted."""

    asked: float  # log time
    before: tuple[float, ...]
    wanted: int  # sessions that are to be judged since then
    requested: float  # log time of the newest request
    looks: tuple[Look, ...] = ()
    after: float | None = None  # mean of the sessions at the newest look
    unanswered: int = 0  # sessions that were due and have no score
    budget: int = 0  # of these, for want of budget
    fall: float | None = None  # what the drop showed when it first stood; None: it has not

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.looks, self.fall)

    @property
    def is_over(self) -> bool:
        """Whether it is undecided, and asking about more sessions would hardly change that."""
        return (
            self.verdict == "undecided"
            and bool(self.looks)
            and not is_worth_more(self.looks[-1], len(self.before), self.fall)
        )


class MoreState(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Of one agent, what the judge is asked beyond `judge.sample`."""

    number: int = 0  # of the newest request
    versions: tuple[str, ...] = ()  # current ones, all of which were asked about
    near: dict[str, tuple[int, float]] = {}
    """By evaluator, scores that had entered when it came near an alarm, and the log time of that."""
    opinion: AskedOpinion | None = None
    day: int = 0
    asked_today: int = 0  # sessions, about drops
    judged: tuple[JudgedSession, ...] = ()  # the newest ones, in order of time
    judge: str = ""  # whose scores these are


class SecondOpinion(msgspec.Struct, frozen=True, kw_only=True):
    """What the judge says of the agent's drop so far."""

    verdict: Verdict
    evaluator: str
    before: float | None  # mean of the scores before the drop; None: there are none
    after: float | None  # mean of those since it was asked, at the last look; None: there was none
    sessions: int  # at that look
    judged: int  # since the judge was asked
    wanted: int
    unanswered: int = 0
    budget: int = 0
    samples_before: int = 0
    contradicts: bool = False  # the judge does not agree with itself
    is_over: bool = False  # more sessions are not worth asking about

    @property
    def words(self) -> str:
        if self.verdict == "confirmed":
            means = f"{self.evaluator} {self.before:.2f} -> {self.after:.2f}"
            return f"the judge agrees: {means} over {self.sessions} sessions"
        if self.verdict == "not_confirmed":
            return f"the judge sees no loss over {self.sessions} sessions"
        if self.contradicts:
            return "the judge has no opinion: it does not agree with itself"
        if self.samples_before < MIN_BASELINE:
            return (
                "the judge has no opinion: it had judged"
                f" {self.samples_before} sessions before, {MIN_BASELINE} are needed"
            )
        if self.is_over:
            return f"the judge cannot tell: undecided after {self.sessions} sessions, more would hardly decide"
        done = f"undecided after {self.sessions}" if self.sessions else "no verdict yet"
        text = f"the judge is asked: {self.judged} of {self.wanted} sessions judged, {done}"
        if self.unanswered:
            budget = f", {self.budget} for want of judge.budget" if self.budget else ""
            text += f"; {self.unanswered} have no answer{budget}"
        return text


OPINIONS = ("task_completion", "conversation_quality", "helpfulness")
"""The judged evaluators that say best whether a session did what was asked, the best first."""


def asked_for_opinions(plan: Plan) -> str | None:
    """The judged evaluator by which the judge gives its second opinion; None: no judge is asked."""
    names = sorted(each.spec.name for each in plan.judged if each.emit and not is_third_party(each))
    return next((each for each in OPINIONS if each in names), names[0] if names else None)
