"""What a message is made of, once its shape no longer matters."""

from __future__ import annotations

from typing import Literal

import msgspec

from evaluators.model import JSON

Role = Literal["system", "user", "assistant", "tool"]


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that a model asked for. `arguments` is an object where it was one."""

    name: str
    id: str | None = None
    arguments: JSON = None


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool gave back, as a later message says it."""

    id: str | None = None
    name: str | None = None
    content: JSON = None
    is_error: bool = False


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message. A tool's answer has `results`, its text stands there."""

    role: Role
    text: str | None = None
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    name: str | None = None
