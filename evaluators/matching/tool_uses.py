"""What became of a trace's tool calls, tool by tool, and the class of an error that one ended with."""

import re
from collections.abc import Mapping, Sequence
from typing import cast

from evaluators.matching.json_values import object_of
from evaluators.model import JSON, ToolCall
from evaluators.uses import LONGEST_NAME, MOST_TOOLS, ToolUse

LONGEST = 48  # characters of a class
_BEGINNING = 400  # characters of the text that are looked at
_TYPE = re.compile(r"\b[A-Za-z]\w{0,39}(?:Error|Exception|Timeout)\b")
_SIGNS = {
    "timeout": r"time[d-]?[ -]?out|deadline|\b(?:408|504)\b",
    "rate_limited": r"rate.?limit|too many requests|quota|\b429\b",
    "denied": r"unauthori[sz]ed|forbidden|permission|denied|not allowed|\b40[13]\b",
    "not_found": r"not found|no such|does not exist|\b404\b",
    "unreachable": r"connect|unreachable|\bdns\b|refused|reset by",
    "server_error": r"internal error|unavailable|\b50[0-3]\b",
    "invalid_arguments": r"invalid|validation|missing|required|\b4(?:00|22)\b",
}
_WORDS = [(word, re.compile(sign, re.IGNORECASE)) for word, sign in _SIGNS.items()]


def error_class(text: str) -> str:
    """`TimeoutError`, or timeout, rate_limited, denied, not_found, unreachable, server_error, invalid_arguments, error.

    The class is what texts that differ in their details have in common. It holds letters, digits and underscores.
    """
    beginning = text[:_BEGINNING]
    named = _TYPE.search(beginning)
    if named is not None:
        return named.group()[:LONGEST]
    return next((word for word, sign in _WORDS if sign.search(beginning)), "error")


_NOTHING = frozenset({"", "[]", "{}", "null", "None", '""', "''"})
_DEPTH = 4
"""Lists and objects within one another that are looked into."""


def tool_uses(calls: Sequence[ToolCall]) -> tuple[ToolUse, ...]:
    """One for each tool that ran, at most MOST_TOOLS, in order of name. A refused call never ran."""
    by_tool: dict[str, list[ToolCall]] = {}
    for call in calls:
        if call.rejected is None:
            by_tool.setdefault(call.name[:LONGEST_NAME], []).append(call)
    uses = [_use(name, of_tool) for name, of_tool in by_tool.items()]
    if len(uses) > MOST_TOOLS:
        uses = sorted(uses, key=lambda each: (-each.calls, each.tool))[:MOST_TOOLS]
    return tuple(sorted(uses))


def _use(name: str, calls: Sequence[ToolCall]) -> ToolUse:
    errors = [call.error for call in calls if call.error is not None]
    results = [call.result for call in calls if call.error is None and call.result is not None]
    return ToolUse(
        tool=name,
        calls=len(calls),
        failed=bool(errors),
        returned=bool(results),
        empty=any(is_nothing(result) for result in results),
        slowest=max(map(_seconds, calls)),
        error=error_class(errors[0]) if errors else "",
        server=next((call.server for call in calls if call.server), "")[:LONGEST_NAME],
    )


def _seconds(call: ToolCall) -> float:
    """How long the call's span took; negative: it has none."""
    if call.span_id is None or call.end_time_unix_nano <= call.start_time_unix_nano:
        return -1.0
    return (call.end_time_unix_nano - call.start_time_unix_nano) / 1e9


def is_nothing(result: JSON, depth: int = _DEPTH) -> bool:
    """Whether a result holds nothing: an empty text, list or object, null, or messages' parts without text.

    A number or a truth value is something, 0 and false too.
    """
    if result is None or isinstance(result, str):
        return result is None or result.strip() in _NOTHING
    if not depth:
        return False
    if isinstance(result, list):
        return all(is_nothing(each, depth - 1) for each in cast(list[JSON], result))
    held = object_of(result)
    return held is not None and _is_nothing_in(held, depth)


def _is_nothing_in(held: Mapping[str, JSON], depth: int) -> bool:
    if held.get("type") == "text":  # a part of a message
        return is_nothing(held.get("text"), depth - 1)
    if "content" in held and "structuredContent" not in held:  # what an MCP server returns
        return is_nothing(held["content"], depth - 1)
    return not held
