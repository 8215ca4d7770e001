"""The evaluators that a trace alone decides, run where it is read. Pure but for the embedder that they ask."""

from dataclasses import replace

from collector.config.plan import failed_outcomes
from collector.records.trace_outcomes import TraceOutcomes
from evaluators.expectations import Expectations
from evaluators.model import Outcome, Previous, Session, Trace
from evaluators.plan import Configured, Plan
from evaluators.resources import Embedder
from evaluators.run import SessionScorer, score_trace
from evaluators.sketches import sketches_of


class TraceScoring:
    """Runs evaluators of the plan. `embedder`: None where no evaluator embeds."""

    def __init__(self, plan: Plan, embedder: Embedder | None, expectations: Expectations) -> None:
        self._sketched = [each for each in plan.trace if each.spec.sketch is not None]
        alone = tuple(each for each in plan.trace if each.spec.sketch is None)
        self._alone = replace(plan, trace=alone)
        self._expecting = frozenset(
            each.spec.name for each in alone if "expectations" in each.spec.needs
        )
        self._plan = plan
        self._embedder = embedder
        self._expectations = expectations

    def outcomes(self, trace: Trace) -> TraceOutcomes:
        """Whatever needs no other trace of its session; of a piece of another trace's turn nothing is said."""
        if trace.is_part:
            return TraceOutcomes()
        if trace.unread is not None:
            return unread_outcomes(self._plan, trace.unread)
        sketches, without = sketches_of(self._sketched, trace, self._embedder)
        return TraceOutcomes(
            (*self._scored(trace, None), *without),
            sketches,
            {
                place: self._scored(trace, place, only=True)
                for place in (self._expectations.turns(trace) if self._expecting else ())
            },
        )

    def plugin(
        self,
        evaluator: Configured,
        trace: Trace,
        history: tuple[Previous, ...],
        turn: int | None,
    ) -> Outcome:
        """The outcome of an evaluator of a third party; `history`: the traces before this one in its session."""
        (outcome,) = score_trace(
            Plan(trace=(evaluator,)),
            trace,
            history=history,
            embedder=self._embedder,
            expectation=self._expectations.find(trace, turn),
        )
        return outcome

    def _scored(
        self, trace: Trace, place: int | None, *, only: bool = False
    ) -> tuple[Outcome, ...]:
        """`only`: of the evaluators that compare the trace with what is expected of it."""
        return score_trace(
            self._alone,
            trace,
            embedder=self._embedder,
            expectation=self._expectations.find(trace, place) if self._expecting else None,
            only=self._expecting if only else None,
        )


def session_outcome(evaluator: Configured, session: Session) -> Outcome:
    scorer = SessionScorer(Plan(session=(evaluator,)))
    for turn in session.turns:
        scorer.put(turn)
    (outcome,) = scorer.outcomes(session, closed=True)
    return outcome


def unread_outcomes(plan: Plan, unread: str) -> TraceOutcomes:
    return TraceOutcomes(failed_outcomes(plan, unread, f"the trace could not be read: {unread}"))
