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
from evaluators.model import Outcome, Session, Trace
from evaluators.plan import Configured
from evaluators.prompts.ask import SKIPPED, Answer, Ask, JudgeError, Prompt

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

MAX_FAULTS = 4
"""Calls about one subject that may fail or give nothing usable; then no more are made."""


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
        judged: The trace evaluators of `Plan.judged` that are due (those of other scope are ignored).
        trace: The subject.
        ask: The way to the judge.
        calls: "shared" = one judging call for all; "separate" = one each, sharing the extraction.
        max_prompt: Tokens a prompt may have, at four characters a token.
        expectation: What is expected of the trace; None when nothing is.
        marker: The random source of the fence.
    """
    raise NotImplementedError


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
        judged: The session evaluators of `Plan.judged` that are due.
        session: The subject.
        traces: Its traces, in the session's order.
        ask: The way to the judge.
        calls: As above.
        max_prompt: As above.
        expectations: By trace id; None = there is no expectations file.
        marker: As above.
    """
    raise NotImplementedError
