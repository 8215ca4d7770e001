"""What one span says, in the words all dialects share."""

from __future__ import annotations

from typing import Literal

import msgspec

from evaluators.dialects.content.content import Content
from evaluators.dialects.content.message_model import Message
from evaluators.model import JSON, Span, Tokens

Kind = Literal["agent", "llm", "tool", "handoff", "other"]
NO_TOKENS = Tokens()


class Facts(msgspec.Struct, kw_only=True, eq=False):
    """The facts of one span. None or empty: the span does not say. Built by one dialect, completed by another."""

    span: Span
    dialect: str
    kind: Kind = "other"
    agent: str | None = None
    """The agent this span is, or works for."""
    names_agent: bool = False
    """Whether an agent span says its agent's name itself, rather than only having a span name."""
    input: Content | None = None
    output: Content | None = None
    system: JSON = None
    """The system prompt as recorded; read by `texts.find_system`."""
    tool_name: str | None = None
    """On a span of kind "other": the function that was traced, which may be a tool's."""
    tool_id: str | None = None
    arguments: JSON = None
    result: JSON = None
    tool_error: str | None = None
    """An error that the attributes state; status and events are read for every dialect alike."""
    definitions: Content | None = None
    """Its value holds the tools offered; read by `definitions.read_definitions`."""
    request_tools: bool = False
    """Whether `input` is a whole request, in which tools stand beside the messages."""
    whole_run: bool = False
    """Whether a model call's `output` is the transcript of a run: it is a call only where it has none inside."""
    tokens: Tokens = NO_TOKENS
    """The call's own; the object `NO_TOKENS` itself when it has none."""
    aggregate: Tokens = NO_TOKENS
    """Sums over the span's descendants."""
    cost: float | None = None
    model: str | None = None
    response_id: str | None = None

    @property
    def messages_in(self) -> tuple[Message, ...]:
        """Messages that went in."""
        return self.input.messages if self.input is not None else ()

    @property
    def messages_out(self) -> tuple[Message, ...]:
        """Messages that came out."""
        return self.output.messages if self.output is not None else ()
