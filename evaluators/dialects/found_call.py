"""A tool call while it is put together from spans and messages."""

from __future__ import annotations

import msgspec

from evaluators.dialects.errors import error_of
from evaluators.dialects.facts import Facts
from evaluators.dialects.parts import Call
from evaluators.dialects.values import text_of
from evaluators.model import JSON


class FoundCall(msgspec.Struct, eq=False):
    """One call; None: not known yet."""

    name: str
    id: str | None = None
    arguments: JSON = None
    result: JSON = None
    error: str | None = None
    agent: str | None = None
    facts: Facts | None = None
    requested: bool = False
    end: int = 0
    start: int = 0

    def same_arguments(self, call: Call) -> bool:
        """Whether both ask for the same: an absent object and an empty one are."""
        return (self.arguments or {}) == (call.arguments or {})


def span_error(facts: Facts) -> str | None:
    """Why a tool's span says that it failed; None when it does not."""
    error = error_of(facts.span)
    if error is None and facts.tool_error is None:
        return None
    if error is None or error == "error":
        said = facts.tool_error if facts.tool_error != "error" else None
        return said or text_of(facts.result) or "error"
    return error
