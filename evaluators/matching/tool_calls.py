"""Facts about tool calls: which failed and were recovered, which contradict their tool's schema."""

import json
from collections.abc import Sequence
from contextvars import ContextVar
from functools import lru_cache
from typing import NamedTuple

from evaluators.errors import Unjudgeable
from evaluators.matching.json_values import encoded
from evaluators.model import JSON, ToolCall, Trace

SCHEMA_LIMIT = 65_536  # bytes of a schema or of arguments, as JSON; what is longer is not judged
TRACE_STEPS = 500_000
"""Steps (`providers.schemas`) that all calls of a trace may take: some seconds."""


def failures(calls: Sequence[ToolCall]) -> tuple[tuple[ToolCall, ...], tuple[ToolCall, ...]]:
    """(unrecovered, recovered) errors, recovered when a later call of the same tool succeeded; without refusals."""
    if not any(call.failed for call in calls):
        return (), ()
    succeeded: set[str] = set()
    lost: list[ToolCall] = []
    recovered: list[ToolCall] = []
    for call in reversed(calls):
        if call.error is None:
            succeeded.add(call.name)
        elif call.failed:
            (recovered if call.name in succeeded else lost).append(call)
    return tuple(reversed(lost)), tuple(reversed(recovered))


def given_up(calls: Sequence[ToolCall], lost: Sequence[ToolCall]) -> bool:
    """Whether no call succeeded after the last of the unrecovered errors; else the agent found a way around them."""
    if not lost:
        return False
    place = next(place for place, call in enumerate(calls) if call is lost[-1])
    return all(call.error is not None for call in calls[place:])


def unknown(trace: Trace) -> tuple[ToolCall, ...]:
    offered = {tool.name for tool in trace.tools_offered}
    return tuple(call for call in trace.tool_calls if offered and call.name not in offered)


class CheckedCalls(NamedTuple):
    judged: tuple[tuple[ToolCall, str | None], ...]
    """Every call that can be judged by the schema of its tool, in order, with what is wrong with it."""
    unchecked: str | None
    """What was not checked because it takes too long, for `truncated`; None: nothing."""

    @property
    def misfits(self) -> tuple[ToolCall, ...]:
        return tuple(call for call, error in self.judged if error is not None)


_last: ContextVar[tuple[Trace, CheckedCalls] | None] = ContextVar("last", default=None)
"""The trace that was checked last: two evaluators ask the same of it one after the other."""


def check_arguments(trace: Trace) -> CheckedCalls:
    """Judge every call by the schema of its tool.

    Once the calls of a trace have taken `TRACE_STEPS`, the others are not judged.
    """
    known = _last.get()
    if known is None or known[0] is not trace:
        known = (trace, _check(trace))
        _last.set(known)
    return known[1]


def _check(trace: Trace) -> CheckedCalls:
    schemas = {tool.name: tool.parameters for tool in trace.tools_offered}
    texts: dict[str, bytes] = {}
    judged: list[tuple[ToolCall, str | None]] = []
    left, unchecked = TRACE_STEPS, 0
    seen: set[str] = set()
    for call in trace.tool_calls:
        schema = schemas.get(call.name)
        if schema is None or call.arguments is None:
            continue
        if left <= 0:
            unchecked += 1
            continue
        if call.name not in texts:
            texts[call.name] = encoded(schema)
        each = _judge(texts[call.name], call.arguments)
        left -= each.steps + (0 if call.name in seen else each.checked)
        seen.add(call.name)
        unchecked += each.is_costly
        if each.is_judged:
            judged.append((call, each.error))
    why = f"arguments: {unchecked} of {len(trace.tool_calls)} calls have a schema that cannot be checked whole"
    return CheckedCalls(tuple(judged), why if unchecked else None)


def span_ids(calls: Sequence[ToolCall]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(call.span_id for call in calls if call.span_id is not None))


def named(calls: Sequence[ToolCall]) -> str:
    names = list(dict.fromkeys(call.name for call in calls))
    return ", ".join(f"`{name}`" for name in names[:5]) + (", ..." if len(names) > 5 else "")


class _Judged(NamedTuple):
    error: str | None  # what is wrong, else why it cannot be judged
    is_judged: bool
    steps: int  # that it took
    checked: int  # steps that the schema takes once
    is_costly: bool = False
    """Whether the schema takes too long, or a pattern in it was left out because RE2 cannot run it."""


def _judge(schema: bytes, arguments: JSON) -> _Judged:
    text = encoded(arguments)
    if max(len(schema), len(text)) > SCHEMA_LIMIT:
        return _Judged("longer than 64 KiB", False, 1, 0)
    return _judge_texts(schema, text)


@lru_cache(maxsize=256)
def _judge_texts(schema: bytes, arguments: bytes) -> _Judged:
    # Agents make the same call again and again. jsonschema takes 100 ms to import: only workers pay for it.
    from evaluators.providers import schemas  # noqa: PLC0415

    try:
        counted = schemas.counted_error(schema.decode(), json.loads(arguments))
    except Unjudgeable as why:
        is_costly = str(why) == schemas.COSTLY
        return _Judged(str(why), False, schemas.STEPS, schemas.CHECK_STEPS, is_costly)
    return _Judged(counted.error, True, counted.steps, counted.checked, counted.untried)
