"""The normalised trace as `spanwise inspect` and the API print it."""

from datetime import UTC, datetime, timedelta

import msgspec

from evaluators.model import JSON, Trace

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIELDS = """
    trace_id service agent agents session_id session_source user_id task_id input output tokens cost_usd models
    tools_offered tool_calls status error root closed dialects spans truncated gaps start end steps turns is_part
    attributes
"""
"""In their public order."""


def show(trace: Trace) -> dict[str, JSON]:
    made: dict[str, JSON] = {
        **{name: list(getattr(trace, name)) for name in ("agents", "models", "dialects", "gaps")},
        "tools_offered": [tool.name for tool in trace.tools_offered],
        "tool_calls": [_picked(each, *_OF_CALL) for each in trace.tool_calls],
        "start": rfc3339(trace.start_time_unix_nano),
        "end": rfc3339(trace.end_time_unix_nano),
        "steps": [_picked(each, "agent", "output", "span_id") for each in trace.steps],
        "turns": [_picked(each, "input", "output", "span_id") for each in trace.turns],
        "tokens": msgspec.to_builtins(trace.tokens),
        "attributes": dict(trace.attributes),
    }
    return {name: made[name] if name in made else getattr(trace, name) for name in _FIELDS.split()}


_OF_CALL = ("id", "name", "arguments", "result", "error", "rejected", "agent", "span_id")


def _picked(of: object, *names: str) -> dict[str, JSON]:
    return {name: getattr(of, name) for name in names}


def rfc3339(unix_nano: int) -> str | None:
    """A time as RFC 3339 in UTC with microseconds; None where it is outside the calendar."""
    try:
        time = _EPOCH + timedelta(microseconds=unix_nano // 1000)
    except OverflowError:
        return None
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")
