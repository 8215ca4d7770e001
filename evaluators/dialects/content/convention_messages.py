"""Messages that are written exactly as the GenAI conventions have them: read without looking for other spellings.

`blocks` reads them as well, with the same result; here msgspec checks the spelling while it parses.
"""

from typing import Literal

import msgspec

from evaluators.dialects.content.blocks import (
    ACTION,
    BEGINS_ITEMS,
    ENCODED,
    Body,
    joined,
    may_be_items,
    read_arguments,
)
from evaluators.dialects.content.message_model import Call, Message, Result, Role
from evaluators.dialects.decoding.values import string
from evaluators.model import JSON

WHOLE = '[{"role":'
"""How a user's text begins that is a whole list of messages: OpenLLMetry for JS, of the responses API's input."""


class _MessagePart(msgspec.Struct, tag_field="type", forbid_unknown_fields=True, gc=False):
    """A part of a message; another key makes it another provider's."""


class _Text(_MessagePart, tag="text"):
    content: str


class _ToolCall(_MessagePart, tag="tool_call"):
    name: str
    id: JSON = None
    arguments: JSON = None


class _ToolResponse(_MessagePart, tag="tool_call_response"):
    response: JSON = None
    id: JSON = None


class _Message(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    role: Literal["system", "user", "assistant", "tool"]
    parts: list[_Text | _ToolCall | _ToolResponse]
    finish_reason: JSON = None


_decode = msgspec.json.Decoder(_Message).decode
_decode_list = msgspec.json.Decoder(list[_Message]).decode
_ERRORS = (msgspec.DecodeError, ValueError, RecursionError)


def read_convention(raw: bytes) -> Message | None:
    """The message in this JSON; None: read it as any other message, which also tells whether it is one."""
    if b'"parts"' not in raw:
        return None
    try:
        return _message_of(_decode(raw))
    except _ERRORS:
        return None


def read_conventions(text: str) -> list[Message] | None:
    """The messages in this JSON list; None: read them one by one, for not all are written so."""
    if '"parts"' not in text:
        return None
    try:
        messages = _decode_list(text)
    except _ERRORS:
        return None
    found: list[Message] = []
    for message in messages:
        if (read := _message_of(message)) is None:
            return None
        found.append(read)
    return found


def _message_of(message: _Message) -> Message | None:
    """None where a part's or the message's spelling does not tell its meaning."""
    body = Body()
    if not _sort(message.parts, body):
        return None
    texts, calls, results = body.texts, body.calls, body.results
    role: Role = message.role
    if role == "tool":
        return Message(role=role, results=tuple(results)) if results else None
    if role == "assistant" and texts and not calls and ACTION in texts[-1]:
        return None
    if role == "assistant" and any(map(may_be_items, filter(BEGINS_ITEMS.match, texts))):
        return None
    text = joined(texts)
    if role == "user":
        if texts and texts[0].startswith((WHOLE, ENCODED)):
            return None
        if results and not text:
            role = "tool"
    return Message(role=role, text=text, calls=tuple(calls), results=tuple(results))


def _sort(parts: list[_Text | _ToolCall | _ToolResponse], body: Body) -> bool:
    for part in parts:
        if isinstance(part, _Text):
            if part.content:
                body.texts.append(part.content)
        elif isinstance(part, _ToolCall):
            name = string(part.name)
            if name is None:
                return False
            arguments = read_arguments(part.arguments)
            body.calls.append(Call(name=name, id=string(part.id), arguments=arguments))
        elif isinstance(part.response, str):
            body.results.append(Result(id=string(part.id), content=part.response))
        else:
            return False
    return True
