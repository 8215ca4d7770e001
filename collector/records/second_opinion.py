"""What a judge says of a drop that other scores have raised: how it is stored, and how it is shown."""

from collections.abc import Iterable

import msgspec

from evaluators.formulas.people_agreement import cohens_kappa
from evaluators.formulas.release_verdict import MIN_BASELINE, Look
from evaluators.formulas.second_opinion import Verdict, verdict_of
from evaluators.plan import Plan, is_third_party

VALUES = {"confirmed": 1, "not_confirmed": 0, "undecided": -1}
"""`spanwise_drop_second_opinion`."""


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
    stands: bool = False  # the drop; while it is only near, no loss that is not seen hushes it

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.looks)


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
