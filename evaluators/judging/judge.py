"""Judged evaluators: one shared extraction, one judging call for all of a scope, each answer checked by itself.

Nothing here waits for anything but `Ask`. Bounds: at most 2 calls a trace for PandaProbe's set and at most `MAX_FAULTS`
that give nothing usable; with an `Ask` of three attempts that is at most 12 requests when everything fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Literal

from evaluators.expectations import Expectation
from evaluators.judging.calls import MAX_FAULTS, Asking, Material, added
from evaluators.judging.client import SKIPPED, Answer, Ask, JudgeError, Prompt
from evaluators.judging.judged_run import Panel, reads_expected
from evaluators.judging.transcript import conversation_recording, trace_recording
from evaluators.model import Failure, Outcome, Session, Trace
from evaluators.outcome import failed, not_applicable
from evaluators.plan import Configured
from evaluators.resources import Conversation

__all__ = [
    "MAX_FAULTS",
    "SKIPPED",
    "Answer",
    "Ask",
    "Calls",
    "JudgeError",
    "Marker",
    "Prompt",
    "Verdict",
    "judge_session",
    "judge_trace",
    "new_marker",
]

Calls = Literal["shared", "separate"]
Marker = Callable[[], str]
"""Gives a new random marker, at least 64 bits as hex, for each call's fence."""


def new_marker() -> str:
    """An unguessable marker."""
    return token_hex(12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of every judged evaluator of one subject, and what it cost altogether.

    Each outcome's `judge` names its own share of tokens and cost: over the outcomes they sum to the totals here.
    """

    outcomes: tuple[Outcome, ...]
    """Exactly one per due evaluator, in the order given."""
    models: tuple[str, ...] = ()
    """Models that answered."""
    calls: int = 0
    """Answers received and errors met; what a cache answered counts too."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    """None: the price of a call is not known."""


async def judge_trace(
    judged: Sequence[Configured],
    trace: Trace,
    ask: Ask,
    *,
    calls: Calls,
    max_prompt: int,
    expectation: Expectation | None = None,
    marker: Marker = new_marker,
) -> Verdict:
    """Judge one trace. Never raises for what a judge or an evaluator does; cancellation passes through.

    Args:
        judged: The judged trace evaluators that are due; those of another scope are ignored.
        trace: The subject.
        ask: The way to the judge.
        calls: "shared" = one judging call for all; "separate" = one each, sharing the extraction.
        max_prompt: Tokens a prompt may have, at four characters a token.
        expectation: What is expected of the trace; None when nothing is.
        marker: The random source of the fence.
    """
    due = [each for each in judged if each.spec.scope == "trace"]
    if trace.unread is not None:
        failure = Failure(type=trace.unread, message="the trace's spans could not be read")
        return Verdict(outcomes=tuple(failed(each, failure) for each in due))
    if not trace.is_turn:
        why = "neither a model nor a tool was called"
        return Verdict(outcomes=tuple(not_applicable(each, "not_a_turn", why) for each in due))
    shown = expectation if any(reads_expected(each.spec) for each in due) else None
    asking = Asking(
        ask,
        Material(
            render=lambda tokens: trace_recording(trace, max_tokens=tokens, expectation=shown),
            max_prompt=max_prompt,
            marker=marker,
        ),
    )
    panel = Panel(due, trace, asking, separate=calls == "separate")
    outcomes = await panel.outcomes({Expectation: expectation})
    return _verdict(outcomes, asking)


async def judge_session(
    judged: Sequence[Configured],
    session: Session,
    traces: Sequence[Trace],
    ask: Ask,
    *,
    calls: Calls,
    max_prompt: int,
    expectations: Mapping[str, Expectation] | None = None,
    marker: Marker = new_marker,
) -> Verdict:
    """Judge one closed session; otherwise as `judge_trace`.

    Args:
        judged: The judged session evaluators that are due; those of another scope are ignored.
        session: The subject.
        traces: Its traces that can still be read, in the session's order.
        ask: The way to the judge.
        calls: As above.
        max_prompt: As above.
        expectations: By trace id; None = there is no expectations file.
        marker: As above.
    """
    due = [each for each in judged if each.spec.scope == "session"]
    turns = tuple(each for each in traces if each.is_turn and each.unread is None)
    conversation = Conversation(session=session, traces=turns, expected=expectations or {})
    if not turns:
        why = "no turn of the session can be read"
        return Verdict(outcomes=tuple(not_applicable(each, "not_a_turn", why) for each in due))
    shown = any(reads_expected(each.spec) for each in due)
    asking = Asking(
        ask,
        Material(
            render=lambda tokens: conversation_recording(
                conversation, max_tokens=tokens, with_expected=shown
            ),
            max_prompt=max_prompt,
            marker=marker,
            context=conversation.emphasis if shown else None,
        ),
    )
    panel = Panel(due, conversation, asking, separate=calls == "separate")
    return _verdict(await panel.outcomes({}), asking)


def _verdict(outcomes: tuple[Outcome, ...], asking: Asking) -> Verdict:
    answers = asking.answers
    return Verdict(
        outcomes=outcomes,
        models=tuple(dict.fromkeys(answer.model for answer in answers)),
        calls=asking.calls,
        input_tokens=sum(answer.input_tokens for answer in answers),
        output_tokens=sum(answer.output_tokens for answer in answers),
        cost_usd=added((answer.cost_usd, 1) for answer in answers),
    )
