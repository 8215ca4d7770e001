"""Repeated calls: of 46 recorded sessions with ten identical tool calls, all 46 failed their task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from evaluators.declare import evaluator
from evaluators.model import JSON, Score, Session, Turn
from evaluators.resources import Running


class RepeatCount(Running):
    """How many calls of the window repeated an earlier call of their trace, and how many calls there were."""

    def __init__(self, options: Mapping[str, JSON]) -> None:
        self._counts: dict[str, tuple[int, int]] = {}
        self.repeated = self.calls = 0

    def put(self, turn: Turn) -> None:
        """Take in a turn; one of the same trace id is replaced."""
        self.drop(turn.trace_id)
        self._counts[turn.trace_id] = (turn.repeated_calls, turn.tool_calls)
        self.repeated += turn.repeated_calls
        self.calls += turn.tool_calls

    def drop(self, trace_id: str) -> None:
        """Forget a turn; an unknown one is no error."""
        repeated, calls = self._counts.pop(trace_id, (0, 0))
        self.repeated -= repeated
        self.calls -= calls


@evaluator(version="1", source="Spanwise", reads={"session", "tool_calls"})
def repeated_calls(
    session: Session, *, count: RepeatCount, limit: Annotated[int, msgspec.Meta(ge=1)] = 10
) -> Score:
    """0 once `limit` tool calls repeated an identical earlier call of their trace, else 1."""
    if not count.calls:
        return Score.not_applicable("the session called no tools")
    return Score(
        value=float(count.repeated < limit),
        explanation=f"{count.repeated} of {count.calls} tool calls repeated an identical one",
        metadata={"repeated_calls": count.repeated, "tool_calls": count.calls},
    )
