"""Repeated calls: all 46 recorded sessions in which one call was repeated ten times failed their task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated

import msgspec

from evaluators.declare import evaluator
from evaluators.model import JSON, Score, Session, Turn
from evaluators.resources import Running


class RepeatCount(Running):
    """How often each tool call was made in the window with the same result (`matching.repeats`)."""

    def __init__(self, options: Mapping[str, JSON]) -> None:
        self._turns: dict[str, Turn] = {}
        self._answers: dict[int, Counter[int]] = {}
        """By digest of tool and arguments, how often each result came."""
        self._levels: Counter[int] = Counter()
        """How many calls were repeated just so often: few entries, so that the greatest is found at once."""
        self.repeated = self.calls = 0

    def put(self, turn: Turn) -> None:
        """Take in a turn; one of the same trace id is replaced."""
        self.drop(turn.trace_id)
        self._turns[turn.trace_id] = turn
        self._count(turn, 1)

    def drop(self, trace_id: str) -> None:
        """Forget a turn; an unknown one is no error."""
        turn = self._turns.pop(trace_id, None)
        if turn is not None:
            self._count(turn, -1)

    @property
    def most(self) -> int:
        """Repeats of the call that was repeated most."""
        return max(self._levels, default=0)

    def _count(self, turn: Turn, sign: int) -> None:
        self.calls += sign * turn.tool_calls
        for asked, answered, times in turn.call_counts:
            answers = self._answers.setdefault(asked, Counter())
            self._level(_repeats(answers), -1)
            answers[answered] += sign * times
            if not answers[answered]:
                del answers[answered]
            self._level(_repeats(answers), 1)
            if not answers:
                del self._answers[asked]

    def _level(self, repeats: int, sign: int) -> None:
        self.repeated += sign * repeats
        self._levels[repeats] += sign
        if not self._levels[repeats]:
            del self._levels[repeats]


def _repeats(answers: Counter[int]) -> int:
    return answers.total() - 1 if len(answers) == 1 else 0


@evaluator(version="2", source="Spanwise", reads={"session", "tool_calls"})
def repeated_calls(
    session: Session, *, count: RepeatCount, limit: Annotated[int, msgspec.Meta(ge=1)] = 10
) -> Score:
    """0 once one tool call was repeated `limit` times in the session with the same result, else 1."""
    if not count.calls:
        return Score.not_applicable("the session called no tools")
    one = f", one of them {count.most} times" if count.most > 1 else ""
    return Score(
        value=float(count.most < limit),
        explanation=f"{count.repeated} of {count.calls} tool calls repeated an earlier one{one}",
        metadata={
            "repeated_calls": count.repeated,
            "most_of_one_call": count.most,
            "tool_calls": count.calls,
        },
    )
