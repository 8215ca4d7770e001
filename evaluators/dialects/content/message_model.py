"""Messages, tool calls and tool results, in one shape for all providers."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from evaluators.model import JSON

Role = Literal["system", "user", "assistant", "tool"]


class Call(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A tool call that a model asked for. `arguments` is an object where it was one."""

    name: str
    id: str | None = None
    arguments: JSON = None
    by_provider: bool = False
    """Whether the provider runs the tool: it was offered, then, though a definition may not name it."""


class Result(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    id: str | None = None
    name: str | None = None
    content: JSON = None
    is_error: bool = False


class Message(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One message. A tool's answer has `results`, its text is there."""

    role: Role
    text: str | None = None
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    name: str | None = None


def this_turn(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages after the user's last one: former turns are repeated in every request and must not count again."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "user":
            return messages[index + 1 :]
    return messages
