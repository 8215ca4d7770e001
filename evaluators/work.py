"""How much an agent did."""

from __future__ import annotations

from operator import add, sub
from typing import NamedTuple


class Work(NamedTuple):
    """The work of one trace, or the sum over the turns of a session (`formulas.work`)."""

    transcript: int = 0
    """Characters of questions, model outputs, tool arguments and tool results."""
    answers: int = 0
    """Characters of model outputs."""
    questions: int = 0
    """Characters of questions."""
    tool_calls: int = 0
    model_calls: int = 0
    turns: int = 0

    def plus(self, other: Work, sign: int = 1) -> Work:
        """The sum, or with sign -1 the difference."""
        return Work(*map(add if sign > 0 else sub, self, other))
