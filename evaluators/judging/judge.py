"""Judged evaluators: one shared extraction, one judging call for all of a scope, each answer checked by itself.

Only calls of `JudgeClient` wait. Bounds: at most 2 calls a trace for PandaProbe's set, and at most `MAX_FAULTS` calls
that give nothing usable; with a client of three attempts that is at most 12 requests when everything fails.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Literal

from evaluators.content import NO_CONTENT, has_text
from evaluators.expectations import Expectation
from evaluators.judging.calls import JudgeCalls, added
from evaluators.judging.judged_run import JudgedRun, reads_expected
from evaluators.judging.prompt import JudgeClient
from evaluators.judging.transcript import conversation_recording, trace_recording
from evaluators.model import Failure, Outcome, Reason, Session, Trace
from evaluators.plan import Configured
from evaluators.resources import Conversation
from evaluators.run import CANCELLED, NOT_A_TURN, failed, not_applicable

Calls = Literal["shared", "separate"]
Marker = Callable[[], str]
"""Gives a new random marker, at least 64 bits as hex, for each call's fence."""


def new_marker() -> str:
    return token_hex(12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcomes of the judged evaluators of one subject, and their cost altogether.

    Each outcome's `judge` names its own share of tokens and cost: over the outcomes they sum to what was paid.
    """

    outcomes: tuple[Outcome, ...]  # exactly one per due evaluator, in the order given
    calls: int = 0  # answers received and errors met; what a cache answered counts too
    cost_usd: float | None = 0.0  # None: the price of a call is not known


async def judge_trace(
    judged: Sequence[Configured],
    trace: Trace,
    client: JudgeClient,
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
        client: The way to the judge.
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
        return _none(due, "not_a_turn", NOT_A_TURN)
    if not has_text(trace):
        return _none(due, "no_content", NO_CONTENT)
    if trace.status == "cancelled":
        return _none(due, "nothing_to_judge", CANCELLED)
    shown = expectation if any(reads_expected(each.spec) for each in due) else None
    judge_calls = JudgeCalls(
        client,
        render=lambda tokens: trace_recording(trace, max_tokens=tokens, expectation=shown),
        max_prompt=max_prompt,
        marker=marker,
    )
    run = JudgedRun(due, trace, judge_calls, separate=calls == "separate")
    outcomes = await run.outcomes({Expectation: expectation})
    return _verdict(outcomes, judge_calls)


async def judge_session(
    judged: Sequence[Configured],
    session: Session,
    traces: Sequence[Trace],
    client: JudgeClient,
    *,
    calls: Calls,
    max_prompt: int,
    expectations: Mapping[str, Expectation] | None = None,
    marker: Marker = new_marker,
) -> Verdict:
    """Judge one closed session; otherwise as `judge_trace`.

    `traces`: those of the session that can still be read, in its order. `expectations`: by trace id; None = there is no
    expectations file.
    """
    due = [each for each in judged if each.spec.scope == "session"]
    read = [each for each in traces if each.is_turn and each.unread is None]
    # A turn without text is like one that is gone: `coverage` counts both as missing.
    turns = tuple(each for each in read if has_text(each))
    conversation = Conversation(session=session, traces=turns, expected=expectations or {})
    if not turns and read:
        return _none(due, "no_content", NO_CONTENT)
    if not turns:
        return _none(due, "not_a_turn", "no turn of the session can be read")
    shown = any(reads_expected(each.spec) for each in due)
    judge_calls = JudgeCalls(
        client,
        render=lambda tokens: conversation_recording(
            conversation, max_tokens=tokens, with_expected=shown
        ),
        max_prompt=max_prompt,
        marker=marker,
        context=conversation.emphasis if shown else None,
    )
    run = JudgedRun(due, conversation, judge_calls, separate=calls == "separate")
    return _verdict(await run.outcomes({}), judge_calls)


def _none(due: Sequence[Configured], reason: Reason, why: str) -> Verdict:
    return Verdict(outcomes=tuple(not_applicable(each, reason, why) for each in due))


def _verdict(outcomes: tuple[Outcome, ...], judge_calls: JudgeCalls) -> Verdict:
    cost = added((answer.cost_usd, 1) for answer in judge_calls.answers)
    return Verdict(outcomes=outcomes, calls=judge_calls.count, cost_usd=cost)
