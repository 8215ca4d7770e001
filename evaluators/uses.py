"""What a trace or a session used and how that went: tools, models, the answer. Fault watches are fed with it."""

from __future__ import annotations

from operator import add, sub
from typing import NamedTuple

import msgspec


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


MOST_TOOLS = 32
"""Tools of a trace or of a session: those that were called most."""


LONGEST_NAME = 64
"""Characters of a tool's name that are kept."""


class CallCount(NamedTuple):
    """How often a trace made one tool call with one result."""

    asked: int
    """64-bit digest of tool and arguments."""
    answered: int
    """64-bit digest of the result, or of the error."""
    times: int
    failed: bool = False
    """Whether the call failed; a refused one has an answer of its own (`matching.repeats.REFUSED`)."""
    tool: int = -1
    """Its place in `Turn.tools`; negative: it has none."""


class ToolUse(NamedTuple):
    """The calls of one tool. Stored by order: append only."""

    tool: str
    calls: int
    """A call that was refused before it ran does not count."""
    failed: bool = False
    """Whether any call failed."""
    returned: bool = False
    """Whether a call that did not fail has a result."""
    empty: bool = False
    """Whether such a result was nothing: an empty text, list or object."""
    slowest: float = -1.0
    """Seconds of the longest call; negative: no call was timed."""
    error: str = ""
    """Class of the first error (`matching.error_class`)."""
    repeated: bool = False
    """Whether one call was made three times with the same result (`matching.repeats`)."""
    server: str = ""
    """The MCP server that its spans name."""


class SessionUses(msgspec.Struct, frozen=True, array_like=True):
    """A session as fault watches see it. None: the session says nothing of it. Stored by order: append only."""

    tools: tuple[ToolUse, ...] = ()
    model_failed: bool | None = None
    """Whether a model call failed; None: there was none."""
    no_answer: bool | None = None
    """Whether it ended without an answer."""
    gave_up: bool | None = None
    """Whether an answer says that the agent could not."""
    answer_cut: bool | None = None
    """Whether an answer reached a limit of length; None: no model call says why it stopped."""
    answer_blocked: bool | None = None
    """Whether an answer was withheld, by a filter or by the model."""
    cancelled: bool | None = None
    """Whether somebody stopped a turn."""
