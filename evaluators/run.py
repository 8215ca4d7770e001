"""Running a plan: every trace evaluator by itself, session evaluators from their running state."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evaluators.expectations import Expectation
from evaluators.matching.text import clip
from evaluators.model import Failure, Outcome, Previous, Session, Trace, Turn
from evaluators.outcome import failed, failure_of, not_applicable, settle
from evaluators.plan import Configured, Plan, Settings, make_plan, needs_history, signals_of
from evaluators.resources import WINDOW, Embedder, History, Running, Vector

__all__ = [
    "Configured",
    "Plan",
    "SessionScorer",
    "Settings",
    "make_plan",
    "needs_history",
    "score_trace",
]


def score_trace(
    plan: Plan,
    trace: Trace,
    *,
    history: Sequence[Previous] = (),
    embedder: Embedder | None = None,
    expectation: Expectation | None = None,
    only: Collection[str] | None = None,
) -> tuple[Outcome, ...]:
    """One outcome per trace evaluator of the plan, emitted or not, in the plan's order.

    An evaluator's exception never propagates: it is that evaluator's outcome, `failed`.

    Args:
        plan: What runs.
        trace: The subject.
        history: The traces before it in its session, oldest first; the newest three are looked at.
        embedder: Required when the plan has evaluators that embed.
        expectation: The trace's expectation; None without one.
        only: Names to run; None = all.
    """
    due = [each for each in plan.trace if only is None or each.spec.name in only]
    if not trace.is_turn:
        why = "neither a model nor a tool was called"
        return tuple(not_applicable(each, "not_a_turn", why) for each in due)
    window = History(tuple(history[-WINDOW:]))
    resources: dict[str, object] = {"history": window, "expectations": expectation}
    if embedder is not None:
        resources["embedder"] = _OneCall(embedder, trace, window)
    return tuple(_score(each, trace, resources) for each in due)


def _score(configured: Configured, trace: Trace, resources: Mapping[str, object]) -> Outcome:
    spec = configured.spec
    more: dict[str, Any] = {}
    history, expectation = resources["history"], resources["expectations"]
    if "history" in spec.needs and isinstance(history, History):
        more["compared"] = tuple(previous.digest for previous in history.previous)
    if "expectations" in spec.needs:
        if not isinstance(expectation, Expectation):
            return not_applicable(configured, "no_expectation", "nothing is expected of this trace")
        more["expectation"] = expectation.digest
    try:
        arguments = {name: resources[_SOURCE[kind]] for name, kind in spec.resources.items()}
        score = spec.function(trace, **arguments, **configured.options)
    except Exception as error:  # noqa: BLE001 - one evaluator's fault is its own outcome
        return failed(configured, failure_of(error), **more)
    return settle(configured, score, **more)


_SOURCE: Mapping[object, str] = {
    Embedder: "embedder",
    History: "history",
    Expectation: "expectations",
}


class _OneCall:
    """An embedder that embeds all texts of a trace and its history at the first request, in one call."""

    def __init__(self, embedder: Embedder, trace: Trace, history: History) -> None:
        self._embedder = embedder
        self._likely = [clip(text) for text in _texts(trace, history) if text]
        self._known: dict[str, Vector] = {}

    @property
    def model(self) -> str:
        return self._embedder.model

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        if any(text not in self._known for text in texts):
            all_texts = dict.fromkeys([*texts, *self._likely])
            missing = [text for text in all_texts if text not in self._known]
            self._known.update(zip(missing, self._embedder.embed(missing), strict=True))
        return [self._known[text] for text in texts]


def _texts(trace: Trace, history: History) -> Iterable[str | None]:
    yield trace.input
    yield trace.output
    for previous in history.previous:
        yield previous.output


class SessionScorer:
    """The running state of one session's window, per evaluator.

    Turns are put and dropped in any order; the outcomes depend on the set alone. An evaluator that keeps no state
    walks the session once, when it closes.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._states: dict[str, Running] = {}
        self._failures: dict[str, Failure] = {}
        for each in plan.session:
            if each.spec.running is not None:
                self._states[each.spec.name] = each.spec.running(each.options)

    def put(self, turn: Turn) -> None:
        """Add a turn, or replace the one of the same trace id."""
        for name, state in self._states.items():
            try:
                state.put(turn)
            except Exception as error:  # noqa: BLE001 - a third party's state must not end scoring
                self._failures[name] = failure_of(error)

    def drop(self, trace_id: str) -> None:
        """Forget a turn that left the window; an unknown one is no error."""
        for name, state in self._states.items():
            try:
                state.drop(trace_id)
            except Exception as error:  # noqa: BLE001 - a third party's state must not end scoring
                self._failures[name] = failure_of(error)

    def outcomes(self, session: Session, *, closed: bool) -> tuple[Outcome, ...]:
        """The session's outcomes now: of all evaluators once it is closed, else of those with a running state."""
        if closed and session.closed is None:
            session = replace(session, closed="closed")
        return tuple(
            self._outcome(each, session, closed=closed)
            for each in self._plan.session
            if closed or each.spec.name in self._states
        )

    def signals_used(self, evaluator: str) -> tuple[str, ...]:
        """Names of the trace evaluators whose scores this session evaluator reads."""
        return next(
            (signals_of(each) for each in self._plan.session if each.spec.name == evaluator), ()
        )

    def _outcome(self, configured: Configured, session: Session, *, closed: bool) -> Outcome:
        spec = configured.spec
        state = self._states.get(spec.name)
        more: dict[str, Any] = {"final": closed and configured.final}
        if state is not None:
            more["coverage"] = state.coverage
        if spec.name in self._failures:
            return failed(configured, self._failures[spec.name], **more)
        arguments = dict.fromkeys(spec.resources, state)
        try:
            score = spec.function(session, **arguments, **configured.options)
        except Exception as error:  # noqa: BLE001 - one evaluator's fault is its own outcome
            return failed(configured, failure_of(error), **more)
        return settle(configured, score, **more)
