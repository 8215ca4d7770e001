"""What is shared while one trace is read: messages that were read before, and what reprs may still cost.

Python reprs are read a hundred times more slowly than JSON.
"""

from contextvars import ContextVar
from typing import Any, Self

_OF_A_TRACE = 1 << 20  # characters; the reprs beyond are left as text


class Room:
    """A context: what is read inside shares it; outside, nothing is bounded.

    What one trace may still cost, whether something was left out for it, and the messages that were read.
    """

    __slots__ = ("_before", "history", "is_short", "left", "messages")

    def __init__(self) -> None:
        self.left = _OF_A_TRACE  # characters of reprs; negative once a text was left as it is
        self.is_short = False  # whether a search ended before it had looked at every candidate
        self.messages: dict[bytes, Any] = {}
        """A recorded message's JSON -> the message in it (`content.histories`)."""
        self.history: tuple[str, tuple[Any, ...]] = ("", ())
        """The list of messages that was read last, without its closing bracket, and the messages in it."""

    @property
    def is_whole(self) -> bool:
        return self.left >= 0 and not self.is_short

    def __enter__(self) -> Self:
        self._before = _room.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _room.reset(self._before)


_room: ContextVar[Room | None] = ContextVar("room", default=None)


def this_room() -> Room | None:
    return _room.get()


def has_room(text: str) -> bool:
    """Takes the room that reading the text needs; False when there is no more."""
    room = _room.get()
    if room is None or room.left < 0:
        return room is None
    room.left -= len(text)
    return room.left >= 0


def search_short() -> None:
    room = _room.get()
    if room is not None:
        room.is_short = True
