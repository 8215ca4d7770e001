"""The facts of one span, in the fields that all dialects share, and the content of its two sides."""

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from evaluators.dialects.content.endings import exception_of, pauses
from evaluators.dialects.content.histories import read_history
from evaluators.dialects.content.message_model import Message
from evaluators.dialects.content.messages import Side, read_messages
from evaluators.dialects.decoding.reprs import is_opaque, looks_like_object, read_repr
from evaluators.dialects.decoding.values import (
    as_dict,
    as_list,
    in_order,
    string,
    text_of,
    unwrap,
    unwrap_cut,
)
from evaluators.model import JSON, Rejection, Span, Tokens

_KEYS = {
    "input": in_order(
        """question query query_str q user_input user_message user_prompt new_message task prompt input inputs
        message user_msg str_or_query_bundle text topic kwargs input_args args input_message input_content data"""
    ),
    "output": in_order(
        """answer final_answer final_output raw output outputs response reply result completion text content
        message data"""
    ),
}
_DEPTH = 6
"""Wrappers around a text that are opened."""


def plain_text(value: JSON, side: str, depth: int = 0) -> str | None:
    """The text under a key of that meaning, else the only text there is; None when it would be a guess."""
    if isinstance(value, str):
        inner = unwrap(value) if depth else value
        return string(value) if isinstance(inner, str) else plain_text(inner, side, depth + 1)
    if depth > _DEPTH:
        return None
    if isinstance(value, list):
        items = as_list(value)
        return plain_text(items[0], side, depth + 1) if len(items) == 1 else None
    item = as_dict(value)
    if side == "input" and {"inputs", "kwargs"} <= item.keys():
        return _of_callback(item["inputs"], depth)
    for key in _KEYS["input" if side == "input" else "output"]:
        if key in item and (text := plain_text(item[key], side, depth + 1)):
            return text
    texts = [text for text in map(string, item.values()) if text]
    return texts[0] if len(texts) == 1 and len(item) == 1 else None


def _of_callback(inputs: JSON, depth: int) -> str | None:
    """What LangChain's callback says that a chain was given: `kwargs` beside it has names, nothing that was asked.

    A graph's state need be no text: then it is the question as it stands, unless nothing is in it.
    """
    text = plain_text(inputs, "input", depth + 1)
    return text or (text_of(inputs) if _says_anything(inputs) else None)


def _says_anything(value: JSON, depth: int = 0) -> bool:
    if isinstance(value, dict | list) and depth < _DEPTH:
        return any(
            _says_anything(each, depth + 1) for each in as_dict(value).values() or as_list(value)
        )
    return value not in (None, "", {}, [])


Kind = Literal["agent", "llm", "tool", "handoff", "other"]
Wraps = Literal["name", "mention"]
"""The function is the span's name, or the span mentions it: a word of its name, or an attribute's value."""
NO_TOKENS = Tokens()
PLAIN = "plain"
"""The dialect of a span that no other dialect reads."""


_END = {"{": "}", "[": "]"}
"""How a container ends that is whole; anything else cannot be seen to be cut."""


class Content(msgspec.Struct, eq=False):
    """One side of a span. `source` gives the recorded value, parsed once, when first asked for."""

    source: Callable[[], JSON] | JSON
    side: Side
    _messages: tuple[Message, ...] | None = None
    _cut: bool | None = None
    _value: JSON = None

    def _read(self) -> None:
        raw = self.source() if callable(self.source) else self.source
        value, self._cut = unwrap_cut(raw)
        self._value = (read_repr(value) or value) if isinstance(value, str) else value

    @property
    def raw(self) -> JSON:
        """The value as it was recorded; None while it would have to be built."""
        return None if callable(self.source) else self.source

    def may_mention(self, texts: Iterable[str]) -> bool:
        """Whether one of `texts` can occur in it, without parsing."""
        raw = self.source
        return not isinstance(raw, str) or any(map(raw.__contains__, texts))

    @property
    def value(self) -> JSON:
        if self._cut is None:
            self._read()
        return self._value

    @property
    def cut(self) -> bool:
        if self._cut is None:
            source = self.source
            if isinstance(source, str) and source[-1:] == _END.get(source[:1], source[-1:]):
                return False
            self._read()
        return self._cut is True

    @property
    def messages(self) -> tuple[Message, ...]:
        """Its messages; empty when it is not a conversation."""
        if self._messages is None:
            source = self.source
            grows = self.side == "input"
            plain = read_history(source, grows=grows) if isinstance(source, str) else None
            self._messages = read_messages(self.value, self.side) if plain is None else plain
        return self._messages

    @property
    def text(self) -> str | None:
        """The last text of this side, as a person would read it; None when it has none or was cut."""
        if self.messages:
            return last_text(self.messages, self.side)
        if isinstance(self.value, str):
            unsaid = looks_like_object(self.value) or is_opaque(self.value)
            return None if unsaid else string(self.value)
        return None if self.cut else plain_text(self.value, self.side)


def last_text(messages: tuple[Message, ...], side: Side) -> str | None:
    if side == "input":
        for message in reversed(messages):
            if message.role == "user" and message.text:
                return message.text
        return None
    for message in reversed(messages):
        if message.role == "assistant" and message.text:
            return message.text
        if message.role in ("user", "tool") or message.calls:
            return None
    return None


class Facts(msgspec.Struct, kw_only=True, eq=False):
    """The facts of one span. None or empty: not recorded. Built by one dialect, completed from the conventions."""

    span: Span
    dialect: str
    kind: Kind = "other"
    agent: str | None = None  # the agent this span is, or works for
    names_agent: bool = False
    """Whether `agent` is a name that the agent was given, rather than its span's."""
    is_side: bool = False  # whether the span is a guard's or a grader's: what it holds is about the turn, not of it
    is_root: bool = False  # whether its instrumentation says that it is the first of its own, though it has a parent
    turn: str | None = None
    """The turn of a conversation that this span is, alone or with others of this name; None: no dialect says so."""
    is_workflow: bool = False
    """Whether a span of kind "agent" is a workflow's, which need not be an agent."""
    run_name: str | None = None
    """What the run of a LangChain agent was called, where that is not the agent's name."""
    graph_node: str | None = None  # the node of a LangGraph graph in which the span ran
    input: Content | None = None
    output: Content | None = None
    system: JSON = None  # the system prompt as recorded; read by `texts.find_system`
    tool_name: str | None = None
    """On a span of kind "other": the function that was traced, which may be a tool's."""
    tool_id: str | None = None
    arguments: JSON = None
    result: JSON = None
    tool_error: str | None = None
    """An error that the attributes state; `error` reads status and events, for every dialect alike."""
    read_result: Callable[[JSON], tuple[JSON, bool]] | None = None
    """Reads a result of the tool's call found elsewhere: what it is, and whether it says that the call failed."""
    rejected: Rejection | None = None
    """Who refused the tool's call before it ran; `tool_error` may have the words."""
    unanswered: bool = False  # whether the tool's call was let run and its end was not reported
    is_cancelled: bool = False
    """Whether somebody stopped it; told once the spans around it are known, as a time-out may have done so."""
    definitions: Content | None = None
    """Its value holds the tools offered; read by `definitions.read_definitions`."""
    request_tools: bool = False
    """Whether `input` is a whole request, in which tools are beside the messages."""
    whole_run: bool = False
    """Whether a model call's `output` is the transcript of a run: it is a call only where it has none inside."""
    answers_apart: bool = False
    """Whether what the model answered comes in records of their own, which may be switched off."""
    tokens: Tokens = NO_TOKENS  # the call's own; the object `NO_TOKENS` itself when it has none
    aggregate: Tokens = NO_TOKENS  # sums over the span's descendants
    cost: float | None = None
    model: str | None = None
    response_id: str | None = None
    session: str | None = None
    """The session that the payload of an outermost span names, where no attribute does."""
    is_step: bool = False  # whether the span is a step of an agent that may have left its own span in another trace
    counts_on: bool = False
    """Of a tool's span: the model calls beside it count their tokens on from call to call."""
    wraps: Wraps | None = None
    """How a span without a kind names the function around which somebody put it by hand; None: none is."""
    plain_name: str | None = None
    """The span's name without the number that the instrumentation adds to repeated names."""

    @property
    def pauses(self) -> bool:
        """Whether it ended in order to wait for somebody, or to hand over: what it raised is not a failure."""
        return pauses(self.span)

    @property
    def was_left(self) -> bool:
        """Whether it ended before it was done, and did not fail: it waits, or somebody stopped it."""
        return self.is_cancelled or self.pauses

    @property
    def error(self) -> str | None:
        """Why the span ended in error: its last exception, its status, else its error type; None: it did not."""
        span = self.span
        if span.status != "error" or self.was_left:
            return None
        message = exception_of(span) or string(span.status_message)
        attributes = span.attributes
        message = message or string(attributes.get("error.message"))
        return message or string(attributes.get("error.type")) or "error"

    @property
    def exception(self) -> str | None:
        """What was raised on the span, whatever its status says."""
        return exception_of(self.span) if self.span.events and not self.was_left else None

    @property
    def messages_in(self) -> tuple[Message, ...]:
        return self.input.messages if self.input is not None else ()

    @property
    def messages_out(self) -> tuple[Message, ...]:
        return self.output.messages if self.output is not None else ()
