"""What went into a span or came out of it, read when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from evaluators.dialects.content.message_model import Message
from evaluators.dialects.content.messages import Side, read_messages
from evaluators.dialects.content.plain_text import plain_text
from evaluators.dialects.decoding.reprs import is_opaque, looks_like_object, read_repr
from evaluators.dialects.decoding.values import string, unwrap_cut
from evaluators.model import JSON


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
        return not isinstance(raw, str) or any(text in raw for text in texts)

    @property
    def value(self) -> JSON:
        """The value without its wrapping."""
        if self._cut is None:
            self._read()
        return self._value

    @property
    def cut(self) -> bool:
        """Whether only the beginning is there."""
        if self._cut is None:
            if isinstance(self.source, str) and _looks_whole(self.source):
                return False
            self._read()
        return self._cut is True

    @property
    def messages(self) -> tuple[Message, ...]:
        """Its messages; empty when it is no conversation."""
        if self._messages is None:
            self._messages = read_messages(self.value, self.side)
        return self._messages

    @property
    def text(self) -> str | None:
        """What a person would read in it: the last words said by this side; None when it has none or was cut."""
        if self.messages:
            return last_text(self.messages, self.side)
        if isinstance(self.value, str):
            unsaid = looks_like_object(self.value) or is_opaque(self.value)
            return None if unsaid else string(self.value)
        return None if self.cut else plain_text(self.value, self.side)


def _looks_whole(text: str) -> bool:
    """Cheap: a container ends as it began, anything else cannot be seen to be cut."""
    head, tail = text[:1], text[-1:]
    return head not in ("{", "[") or tail == ("}" if head == "{" else "]")


def last_text(messages: tuple[Message, ...], side: Side) -> str | None:
    """The user's last words, or the assistant's, when nothing but its own words follows them."""
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
