"""Confidence from facts: the deterministic sibling of PandaProbe's judge, and a signal of session formulas."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from evaluators.counts import amount
from evaluators.declare import pandaprobe
from evaluators.matching.final_answer import (
    ended_in_action,
    ended_refused,
    ends_with_call,
    says_what_models_answered,
)
from evaluators.matching.repeats import RepeatCounts, is_stuck, repeats
from evaluators.matching.text import clip
from evaluators.matching.tool_calls import failures, given_up, named, span_ids
from evaluators.model import Score, Trace
from evaluators.resources import Block, UnitInterval

# Doubt and failed attempts only: "I am unable to cancel this ticket" states a rule, and states it decisively.
_HEDGE = re.compile(
    r"\bi(?:'m| am|\u2019m) not (?:\w+ )?sure\b|\bi (?:do not|don't|don\u2019t) know\b"
    r"|\bi (?:could not|couldn't|couldn\u2019t|was (?:not able|unable) to) (?:\w+ )?"
    r"(?:find|determine|complete|access|verify|retrieve|answer)\b"
    r"|\btry again later\b|\bsomething went wrong\b",
    re.IGNORECASE,
)
_HEDGE_WORDS = ("sure", "know", "could", "able", "later", "wrong")
"""Every hedge has one of these. Without an i, the one letter that matches others than casefold() knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Doubt:
    """One kind of sign that the agent was not decisive, and its penalty."""

    cost: float
    reason: str
    risk: float | None = None  # what it counts in session formulas; None: as much as it costs
    spans: tuple[str, ...] = ()


class Decisiveness(Block, frozen=True, kw_only=True):
    """Were the agent's actions decisive, appropriate, consistent and well-founded?

    Signs against it: hedging, contradictions, needless retries, vague output, identical repeated calls, abandoned
    strategies. 1 = fully confident; 0.75 = minor hesitation; 0.5 = noticeable indecision; 0.25 = significant
    uncertainty; 0 = contradictory throughout.
    """

    confidence: UnitInterval
    reason: str | None = None


@pandaprobe(version="2", reads={"text", "root"})
def confidence(trace: Trace) -> Score:
    """1 minus bounded penalties for errors that were not recovered, repeats, a missing answer and hedging.

    Cost each and at most: unrecovered tool error 0.3, 0.6; recovered 0.1, 0.2; identical repeat 0.2, 0.6. A model
    error costs 0.4 when the last model call failed, else 0.1, and a trace that ended in error without either 0.3. No
    final answer although answers are exported costs 0.5, or 0.2 if it ended with a tool call that succeeded. An answer
    of doubt or failure costs 0.25, and a trace that broke off in a tool call 0.6.

    Session formulas count otherwise: unrecovered error 0.55 at least where no later call succeeded, else 0.2 each;
    recovered 0.05. Repeats cost 0.6 where the agent went round in a circle (twice or more in a row without a new
    call), else 0.05 each, at most 0.15. Ended with a call 0.1; a last model call that failed 0.6; doubt 0.15. A
    refused call is not an error, and no answer need follow it.
    """
    doubts = [*_tool_doubts(trace), *_model_doubts(trace), *_answer_doubts(trace)]
    spans = dict.fromkeys(span for doubt in doubts for span in doubt.spans)
    risks = [doubt.cost if doubt.risk is None else doubt.risk for doubt in doubts]
    return Score(
        value=max(0.0, 1 - sum(doubt.cost for doubt in doubts)),
        risk=min(1.0, sum(risks)),
        explanation="; ".join(doubt.reason for doubt in doubts) or "no sign of hesitation",
        evidence=tuple(spans),
    )


def _tool_doubts(trace: Trace) -> Iterator[_Doubt]:
    calls = trace.tool_calls
    lost, recovered = failures(calls)
    again = repeats(calls)
    if not (lost or recovered or again):
        return
    lost_risk = max(0.55, 0.3 * len(lost)) if given_up(calls, lost) else 0.2 * len(lost)
    again_risk = 0.6 if is_stuck(calls, again) else min(0.15, 0.05 * len(again))
    repeated = RepeatCounts.of(calls).repeats(f"of {amount(len(calls), 'tool call')} ")
    errors = min(0.1, 0.05 * len(recovered))
    for some, each, most, risk, what in (
        (lost, 0.3, 0.6, min(0.6, lost_risk), f"{amount(len(lost), 'tool error')} not recovered"),
        (recovered, 0.1, 0.2, errors, f"{amount(len(recovered), 'tool error')} recovered"),
        (again, 0.2, 0.6, again_risk, repeated),
    ):
        if some:
            reason = f"{what} ({named(some)})"
            cost = min(most, each * len(some))
            yield _Doubt(cost=cost, risk=risk, reason=reason, spans=span_ids(some))


def _model_doubts(trace: Trace) -> Iterator[_Doubt]:
    failed = [call.span_id for call in trace.model_calls if call.error is not None]
    if failed:
        last = trace.model_calls[-1].error is not None
        reason = f"{amount(len(failed), 'model call')} failed{', the last one too' if last else ''}"
        risk = 0.6 if last else None
        yield _Doubt(cost=0.4 if last else 0.1, risk=risk, reason=reason, spans=tuple(failed))
    elif trace.status == "error" and not any(call.error for call in trace.tool_calls):
        root = () if trace.root_span_id is None else (trace.root_span_id,)
        yield _Doubt(cost=0.3, reason="the trace ended in error", spans=root)


def _answer_doubts(trace: Trace) -> Iterator[_Doubt]:
    if _broke_off(trace):
        is_unanswered = trace.tool_calls[-1].unanswered
        missing = (
            "its end never came" if is_unanswered else "neither its result nor the root span came"
        )
        yield _Doubt(cost=0.6, reason=f"it broke off in a tool call: {missing}")
        return
    if trace.output is None or not trace.output.strip():
        # Without content or root the answer may exist and just not be recorded.
        if {"no_content", "no_root"} & set(trace.gaps):
            return
        if ended_refused(trace):
            return
        if ended_in_action(trace):
            yield _Doubt(cost=0.2, risk=0.1, reason="it ended with a tool call and no answer")
        elif says_what_models_answered(trace):
            yield _Doubt(cost=0.5, reason="no final answer")
    elif found := _hedge(clip(trace.output)):
        yield _Doubt(
            cost=0.25, risk=0.15, reason=f"the answer hedges or gives up: `{found.group()}`"
        )


def _hedge(text: str) -> re.Match[str] | None:
    folded = text.casefold()  # a tenth of the expression's cost
    return _HEDGE.search(text) if any(word in folded for word in _HEDGE_WORDS) else None


def _broke_off(trace: Trace) -> bool:
    """Whether the process died in a tool call: the last call has no end, and no span came any more, nor the root.

    Where the root is a prompt's record, which comes first, that the call was let run and no end of it was reported.
    A trace that was closed for its age or size went on elsewhere; one without model calls is a tool's own. Some
    libraries never export the root: without it alone nothing broke off.
    """
    if trace.closed not in ("idle", "root_ended") or not trace.model_calls:
        return False
    if not ends_with_call(trace):
        return False
    last = trace.tool_calls[-1]
    if last.unanswered:
        return True
    if trace.root != "missing" or trace.closed != "idle":
        return False
    return last.span_id is None and last.result is None and last.error is None


@pandaprobe(version="1", name="confidence", reads={"text", "root"})
def judged_confidence(trace: Trace, *, decisiveness: Decisiveness) -> Score:
    """How decisive and well-founded the agent's actions were, as a judge sees it."""
    return Score(value=decisiveness.confidence, explanation=decisiveness.reason)
