"""The normalised trace as `spanwise inspect` and the API print it."""

from datetime import UTC, datetime, timedelta

import msgspec

from evaluators.model import JSON, ToolCall, Trace

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def show(trace: Trace) -> dict[str, JSON]:
    """The trace's fields in their public order, then start, end, the steps of agents, and whether it is not a turn."""
    return {
        "trace_id": trace.trace_id,
        "service": trace.service,
        "agent": trace.agent,
        "agents": list(trace.agents),
        "session_id": trace.session_id,
        "session_source": trace.session_source,
        "user_id": trace.user_id,
        "task_id": trace.task_id,
        "input": trace.input,
        "output": trace.output,
        "tokens": msgspec.to_builtins(trace.tokens),
        "cost_usd": trace.cost_usd,
        "models": list(trace.models),
        "tools_offered": [tool.name for tool in trace.tools_offered],
        "tool_calls": [_show_call(call) for call in trace.tool_calls],
        "status": trace.status,
        "error": trace.error,
        "root": trace.root,
        "closed": trace.closed,
        "dialects": list(trace.dialects),
        "spans": trace.spans,
        "truncated": trace.truncated,
        "gaps": list(trace.gaps),
        "start": rfc3339(trace.start_time_unix_nano),
        "end": rfc3339(trace.end_time_unix_nano),
        "steps": [
            {"agent": step.agent, "output": step.output, "span_id": step.span_id}
            for step in trace.steps
        ],
        "turns": [
            {"input": turn.input, "output": turn.output, "span_id": turn.span_id}
            for turn in trace.turns
        ],
        "is_part": trace.is_part,
        "attributes": dict(trace.attributes),
    }


def _show_call(call: ToolCall) -> dict[str, JSON]:
    shown = ("id", "name", "arguments", "result", "error", "rejected", "agent", "span_id")
    return {name: getattr(call, name) for name in shown}


def rfc3339(unix_nano: int) -> str | None:
    """A time as RFC 3339 in UTC with microseconds; None where it is outside the calendar."""
    try:
        time = _EPOCH + timedelta(microseconds=unix_nano // 1000)
    except OverflowError:
        return None
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")
