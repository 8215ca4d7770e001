"""Facts about a trace's tool calls: which repeat, which failed and were made good, what they were checked against."""

from __future__ import annotations

from collections.abc import Sequence

from evaluators.matching.schemas import Unjudgeable, argument_error
from evaluators.matching.shapes import encoded
from evaluators.model import JSON, ToolCall, Trace

TEXT_LIMIT = 2000
LIST_LIMIT = 16_000


def repeats(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """Calls whose tool and arguments an earlier call already had, unless every such call had failed.

    Trying a failed call again is a retry, not a repeat. Calls whose arguments were not exported are never repeats.
    """
    answered: set[tuple[str, bytes]] = set()
    found: list[ToolCall] = []
    for call in calls:
        if call.arguments is None:
            continue
        key = (call.name, encoded(call.arguments))
        if key in answered:
            found.append(call)
        if call.error is None:
            answered.add(key)
    return tuple(found)


def failures(calls: Sequence[ToolCall]) -> tuple[tuple[ToolCall, ...], tuple[ToolCall, ...]]:
    """(unrecovered, recovered) errors: recovered when a later call of the same tool succeeded."""
    succeeded: set[str] = set()
    lost: list[ToolCall] = []
    recovered: list[ToolCall] = []
    for call in reversed(calls):
        if call.error is None:
            succeeded.add(call.name)
        else:
            (recovered if call.name in succeeded else lost).append(call)
    return tuple(reversed(lost)), tuple(reversed(recovered))


def unknown(trace: Trace) -> tuple[ToolCall, ...]:
    """Calls of tools that the model was not offered; none when the trace does not say what it was offered."""
    offered = {tool.name for tool in trace.tools_offered}
    return tuple(call for call in trace.tool_calls if offered and call.name not in offered)


def misfits(trace: Trace) -> tuple[ToolCall, ...]:
    """Calls whose arguments contradict the schema of their tool."""
    schemas = {tool.name: tool.parameters for tool in trace.tools_offered}
    return tuple(
        call for call in trace.tool_calls if _contradicts(schemas.get(call.name), call.arguments)
    )


def _contradicts(schema: JSON, arguments: JSON) -> bool:
    if schema is None or arguments is None:
        return False
    try:
        return argument_error(schema, arguments) is not None
    except Unjudgeable:
        return False


def span_ids(calls: Sequence[ToolCall]) -> tuple[str, ...]:
    """The spans of those calls that have one, once each, in order."""
    return tuple(dict.fromkeys(call.span_id for call in calls if call.span_id is not None))


def named(calls: Sequence[ToolCall]) -> str:
    """Their tools' names for an explanation, at most five."""
    names = list(dict.fromkeys(call.name for call in calls))
    return ", ".join(f"`{name}`" for name in names[:5]) + (", ..." if len(names) > 5 else "")


def brief(value: JSON) -> JSON:
    """The value, or the beginning of its JSON when it is long."""
    if isinstance(value, str):
        return value if len(value) <= TEXT_LIMIT else value[:TEXT_LIMIT] + "..."
    text = encoded(value)
    return value if len(text) <= TEXT_LIMIT else text[:TEXT_LIMIT].decode(errors="ignore") + "..."


def bounded(entries: Sequence[JSON]) -> list[JSON]:
    """As many of the first entries as fit into 16 kB of JSON."""
    kept: list[JSON] = []
    room = LIST_LIMIT
    for entry in entries:
        room -= len(encoded(entry))
        if room < 0:
            break
        kept.append(entry)
    return kept


def left_out(name: str, kept: Sequence[JSON], every: Sequence[object]) -> str | None:
    """What a bounded list lacks, for `truncated`."""
    return None if len(kept) == len(every) else f"{name}: {len(kept)} of {len(every)}"
