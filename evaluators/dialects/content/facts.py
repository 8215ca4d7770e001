"""The facts of one span, in the fields that all dialects share."""

from __future__ import annotations

from typing import Literal

import msgspec

from evaluators.dialects.content.content import Content
from evaluators.dialects.content.message_model import Message
from evaluators.dialects.decoding.values import string
from evaluators.model import JSON, Span, Tokens

Kind = Literal["agent", "llm", "tool", "handoff", "other"]
Wraps = Literal["name", "mention"]
"""The function is the span's name, or the span mentions it: a word of its name, or an attribute's value."""
NO_TOKENS = Tokens()
PLAIN = "plain"
"""The dialect of a span that no other dialect reads."""


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
    """An error that the attributes state; `error` reads status and events, for every dialect alike."""
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
    wraps: Wraps | None = None
    """How a span without a kind names the function around which somebody put it by hand; None: none is."""
    plain_name: str | None = None
    """The span's name without the number that the instrumentation adds to repeated names."""

    @property
    def error(self) -> str | None:
        """Why the span ended in error: its last exception, its status, else its error type; None: it did not."""
        span = self.span
        if span.status != "error":
            return None
        message = _exception_of(span) or string(span.status_message)
        attributes = span.attributes
        message = message or string(attributes.get("error.message"))
        return message or string(attributes.get("error.type")) or "error"

    @property
    def messages_in(self) -> tuple[Message, ...]:
        """Messages that went in."""
        return self.input.messages if self.input is not None else ()

    @property
    def messages_out(self) -> tuple[Message, ...]:
        """Messages that came out."""
        return self.output.messages if self.output is not None else ()


def _exception_of(span: Span) -> str | None:
    """The message of the span's last exception event, else its type."""
    for event in reversed(span.events):
        if event.name == "exception":
            message = string(event.attributes.get("exception.message"))
            return message or string(event.attributes.get("exception.type"))
    return None
