"""Messages that are written exactly as the GenAI conventions have them: read without looking for other spellings.

`blocks` reads them as well, with the same result; here msgspec checks the spelling while it parses.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from evaluators.dialects.content.blocks import ACTION, Body, read_arguments
from evaluators.dialects.content.message_model import Call, Message, Result
from evaluators.dialects.decoding.values import string
from evaluators.model import JSON

WHOLE = '[{"role":'
"""How a user's text begins that is a whole list of messages: OpenLLMetry for JS, of the responses API's input."""


class _Part(msgspec.Struct, tag_field="type", forbid_unknown_fields=True):
    """A part of a message; another key makes it another provider's."""


class _Text(_Part, tag="text"):
    content: str


class _ToolCall(_Part, tag="tool_call"):
    name: str
    id: JSON = None
    arguments: JSON = None


class _ToolResponse(_Part, tag="tool_call_response"):
    response: JSON = None
    id: JSON = None


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["system", "user", "assistant", "tool"]
    parts: list[_Text | _ToolCall | _ToolResponse]
    finish_reason: JSON = None


_decode = msgspec.json.Decoder(_Message).decode


def read_convention(raw: bytes) -> Message | None:
    """The message in this JSON; None: read it as any other message, which also tells whether it is one."""
    if b'"parts"' not in raw:
        return None
    try:
        message = _decode(raw)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    body = Body()
    for part in message.parts:
        if not _add(part, body):
            return None
    return _told(message, body)


def _add(part: _Text | _ToolCall | _ToolResponse, body: Body) -> bool:
    """Whether the part is one whose meaning its spelling tells."""
    if isinstance(part, _Text):
        if part.content:
            body.texts.append(part.content)
        return True
    if isinstance(part, _ToolCall):
        name = string(part.name)
        if name is not None:
            arguments = read_arguments(part.arguments)
            body.calls.append(Call(name=name, id=string(part.id), arguments=arguments))
        return name is not None
    if isinstance(part.response, str):
        body.results.append(Result(id=string(part.id), content=part.response))
        return True
    return False


def _told(message: _Message, body: Body) -> Message | None:
    role, texts, calls, results = message.role, body.texts, tuple(body.calls), tuple(body.results)
    if role == "tool":
        return Message(role=role, results=results) if results else None
    if role == "assistant" and not calls and texts and ACTION in texts[-1]:
        return None
    text = body.text
    if role == "user":
        if texts and texts[0].startswith(WHOLE):
            return None
        if results and not text:
            role = "tool"
    return Message(role=role, text=text, calls=calls, results=results)
