"""Running a plan: every trace evaluator by itself, session evaluators from their state; from a value to its outcome."""

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from evaluators.content import (
    NO_CONTENT,
    has_text,
    is_blind,
    reads_content,
    shows_fault,
    unfounded,
)
from evaluators.coverage import is_low, low_coverage
from evaluators.expectations import Expectation
from evaluators.formulas.distribution import clamp, rounded
from evaluators.matching.text import clip
from evaluators.model import Failure, Outcome, Previous, Reason, Score, Session, Trace, Turn
from evaluators.plan import Configured, Plan, signals_of
from evaluators.resources import WINDOW, Embedder, History, Running, Vector

NOT_A_TURN = "neither a model nor a tool was called, and no agent took a step"
CANCELLED = "somebody stopped the run: no answer of it can be judged"
NO_TURN = (
    "no trace of the session holds a call of a model or a tool, or a step of an agent;"
    " `spanwise doctor` names libraries whose spans no dialect reads"
)


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
        return tuple(not_applicable(each, "not_a_turn", NOT_A_TURN) for each in due)
    window = History(tuple(history[-WINDOW:]))
    resources: dict[str, object] = {"history": window, "expectations": expectation}
    if embedder is not None:
        resources["embedder"] = _OneCall(embedder, trace, window)
    return tuple(_score(each, trace, resources) for each in due)


def _score(configured: Configured, trace: Trace, resources: Mapping[str, object]) -> Outcome:
    spec = configured.spec
    more: dict[str, Any] = {}
    is_seen = has_text(trace)
    if not is_seen and is_blind(spec, trace):
        return not_applicable(configured, "no_content", NO_CONTENT)
    if trace.status == "cancelled" and "text" in spec.reads:
        return not_applicable(configured, "nothing_to_judge", CANCELLED)
    try:
        if not spec.resources:  # as most
            score = spec.function(trace, **configured.options)
        else:
            history, expectation = resources["history"], resources["expectations"]
            if "history" in spec.needs and isinstance(history, History):
                more["compared"] = tuple([previous.digest for previous in history.previous])
            if "expectations" in spec.needs:
                if not isinstance(expectation, Expectation):
                    return not_applicable(
                        configured, "no_expectations", "nothing is expected of this trace"
                    )
                more["expectation"] = expectation.digest
            arguments = {name: resources[_SOURCE[kind]] for name, kind in spec.resources.items()}
            score = spec.function(trace, **arguments, **configured.options)
        outcome = settle(configured, score, **more)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - one evaluator's fault is its own outcome
        return failed(configured, failure_of(error), **more)
    if not is_seen and reads_content(spec) and not shows_fault(outcome):
        return not_applicable(configured, "no_content", unfounded(outcome), **more)
    return outcome


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
    for each in (*history.previous, *trace.turns):
        yield each.output


class SessionScorer:
    """The running state of one session's window, per evaluator.

    Turns are put and dropped in any order; the outcomes depend on the set alone. An evaluator that keeps no state
    walks the session once, when it closes.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._states: dict[str, Running] = {}
        self._failures: dict[str, Failure] = {}
        self._has_text: dict[str, bool] = {}
        self._with_text = 0
        for each, state in plan.running:
            self._states[each.spec.name] = state(each.options)

    def put(self, turn: Turn) -> None:
        self._forget_text(turn.trace_id)
        self._has_text[turn.trace_id] = turn.has_text
        self._with_text += turn.has_text
        self._of_each(lambda state: state.put(turn))

    def drop(self, trace_id: str) -> None:
        """Forget a turn that left the window; an unknown one is not an error."""
        self._forget_text(trace_id)
        self._of_each(lambda state: state.drop(trace_id))

    def _of_each(self, change: Callable[[Running], None]) -> None:
        for name, state in self._states.items():
            try:
                change(state)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - a third party's state must not end scoring
                self._failures[name] = failure_of(error)

    def _forget_text(self, trace_id: str) -> None:
        self._with_text -= self._has_text.pop(trace_id, False)

    @property
    def _is_seen(self) -> bool:
        return not is_low((len(self._has_text), self._with_text))

    def outcomes(self, session: Session, *, closed: bool) -> tuple[Outcome, ...]:
        """The session's outcomes now: of all evaluators once it is closed, else of those with a running state."""
        if closed and session.closed is None:
            session = replace(session, closed="closed")
        due = self._plan.session
        if not closed:
            due = [each for each in due if each.spec.name in self._states]
        return tuple([self._outcome(each, session, closed=closed) for each in due])

    def signals_used(self, evaluator: str) -> tuple[str, ...]:
        return next(
            (signals_of(each) for each in self._plan.session if each.spec.name == evaluator), ()
        )

    def _outcome(self, configured: Configured, session: Session, *, closed: bool) -> Outcome:
        spec = configured.spec
        state = self._states.get(spec.name)
        more: dict[str, Any] = {"final": closed and configured.final}
        missing: Mapping[str, int] = {}
        if state is not None and (coverage := state.coverage) is not None:
            more["coverage"], missing = coverage, state.missing
        if spec.name in self._failures:
            return failed(configured, self._failures[spec.name], **more)
        # Coverage tells what a formula over scores lacks; other evaluators read the content itself.
        reads_turns = reads_content(spec) and "coverage" not in more
        if reads_turns and "text" in spec.reads and self._has_text and not self._with_text:
            return not_applicable(configured, "no_content", NO_CONTENT, **more)
        outcome = _score_session(configured, session, state, missing, **more)
        if reads_turns and not (self._is_seen or shows_fault(outcome)):
            return not_applicable(configured, "no_content", unfounded(outcome), **more)
        return outcome


def rank_session(configured: Configured, session: Session, earlier: object) -> Outcome:
    """The outcome of an evaluator that ranks the session among earlier ones, which `earlier` holds."""
    return _score_session(configured, session, earlier, final=session.closed is not None)


def _score_session(
    configured: Configured,
    session: Session,
    resource: object,
    missing: Mapping[str, int] = {},
    **more: Any,
) -> Outcome:
    arguments = dict.fromkeys(configured.spec.resources, resource)
    try:
        score = configured.spec.function(session, **arguments, **configured.options)
        return settle(configured, score, missing, **more)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - one evaluator's fault is its own outcome
        return failed(configured, failure_of(error), **more)


# --- from a returned value to its outcome: the same rules for traces and sessions ------------------------------------

MESSAGE_LIMIT = 500
"""Characters of an exception's text in a signal."""
MOST_SAID = 16 << 10
"""Bytes of JSON beside a third party's score: with fifty evaluators they fit in one record, which is a megabyte."""


def settle(
    configured: Configured, score: object, missing: Mapping[str, int] = {}, **more: Any
) -> Outcome:
    """The outcome of a returned value; `more` are further fields of the outcome, `missing` those of `Running`.

    A value outside [0, 1] or not a number is `failed`; a third party's is clamped, NaN apart. Success compares the
    value as returned with the threshold; the published score has four decimals.
    """
    if score is None:
        score = Score.not_applicable("the evaluator returned None")
    elif isinstance(score, (bool, int, float)):
        score = Score(value=score)
    if not isinstance(score, Score):
        message = f"returned {type(score).__name__}, not a Score"
        return failed(configured, Failure(type="invalid_score", message=message), **more)
    said = (score.metadata, score.explanation, score.evidence)
    if configured.spec.method == "custom" and (why := _unfit(said)):
        message = f"metadata, explanation and evidence {why}"
        return failed(configured, Failure(type="invalid_metadata", message=message), **more)
    if score.coverage is not None:
        more["coverage"] = score.coverage
    coverage: tuple[int, int] | None = more.get("coverage")
    if coverage is not None and (
        is_low(coverage) or (score.state == "not_applicable" and coverage[1] < coverage[0])
    ):
        why = low_coverage(coverage, missing)
        return skipped(configured, "low_coverage", explanation=why, **more)
    if score.state != "scored":
        return _unscored(configured, score, more)
    value = score.value if type(score.value) is float else _number(score.value)
    if configured.spec.method == "custom":
        value = clamp(value)
    if not 0 <= value <= 1:  # also NaN
        message = f"{score.value!r} is not a number from 0 to 1"
        return failed(configured, Failure(type="invalid_score", message=message), **more)
    return _scored(configured, score, value, more)


def failed(configured: Configured, failure: Failure, **more: Any) -> Outcome:
    return _outcome(configured, state="failed", error=failure, **more)


def failure_of(error: BaseException) -> Failure:
    try:
        text = f"{type(error).__name__}: {error}"[:MESSAGE_LIMIT]
    except BaseException:  # noqa: BLE001 - a third party's may raise when it is asked
        text = "an exception whose text cannot be read"
    return Failure(type="exception", message=text.encode(errors="replace").decode())


def skipped(configured: Configured, reason: str, **more: Any) -> Outcome:
    """The evaluator was due and its judge was not asked, on purpose: a budget is spent, for instance."""
    return _outcome(configured, state="skipped", reason=reason, **more)


def not_applicable(
    configured: Configured, reason: Reason, explanation: str, **more: Any
) -> Outcome:
    return _outcome(
        configured, state="not_applicable", reason=reason, explanation=explanation, **more
    )


def _unscored(configured: Configured, score: Score, more: dict[str, Any]) -> Outcome:
    reason = None
    if score.state == "not_applicable":
        reason = score.reason or "nothing_to_judge"
    return _outcome(
        configured,
        state=score.state,
        reason=reason,
        assumed=score.assumed,
        explanation=score.explanation,
        metadata=score.metadata,
        truncated=score.truncated,
        **more,
    )


def _scored(configured: Configured, score: Score, value: float, more: dict[str, Any]) -> Outcome:
    if not configured.is_calibrated:
        return _outcome(
            configured,
            state="measured",
            measured=rounded(value),
            threshold=None,
            explanation=score.explanation,
            metadata={**score.metadata, "value": rounded(value)},
            evidence=score.evidence,
            truncated=score.truncated,
            **more,
        )
    spec = configured.spec
    threshold = configured.threshold if score.threshold is None else score.threshold
    success = score.success
    if success is None and threshold is not None:
        success = value >= threshold
    metadata = score.metadata
    if spec.verdict_in_metadata:
        metadata = {**metadata, "threshold": threshold, "success": success}
    if "final" not in more:
        more["final"] = configured.final
    return Outcome(  # not by `_outcome`: every score comes here, and a call less for each is 2 % of scoring a trace
        evaluator=spec.name,
        version=spec.version,
        method=spec.method,
        options_digest=configured.options_digest,
        state="scored",
        score=rounded(value),
        success=success,
        threshold=threshold,
        explanation=score.explanation,
        metadata=metadata,
        evidence=score.evidence,
        truncated=score.truncated,
        risk=None if score.risk is None else _risk(score.risk, value),
        **more,
    )


def _risk(risk: float, value: float) -> float | None:
    """The calibrated risk; None where it is 1 - value, as session formulas take it then."""
    if rounded(risk) == rounded(1 - value):
        return None
    return clamp(risk)


def _outcome(configured: Configured, **fields: Any) -> Outcome:
    spec = configured.spec
    fields.setdefault("final", configured.final)
    fields.setdefault("threshold", configured.threshold)
    return Outcome(
        evaluator=spec.name,
        version=spec.version,
        method=spec.method,
        options_digest=configured.options_digest,
        **fields,
    )


def _number(value: object) -> float:
    try:
        return float(value)  # pyright: ignore[reportArgumentType] - a third party can return anything
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _unfit(value: object) -> str | None:
    """Why no record can hold it; None: one can."""
    try:
        size = len(json.dumps(value, allow_nan=False))
        msgspec.msgpack.encode(value)  # records hold whole numbers of 64 bits and UTF-8 alone
    except (TypeError, ValueError, OverflowError, RecursionError):
        return "are not JSON"
    return None if size <= MOST_SAID else f"take more than {MOST_SAID >> 10} KiB"
