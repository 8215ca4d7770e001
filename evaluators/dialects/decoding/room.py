"""What may be spent on reading the Python reprs of one trace: they are read a hundred times more slowly than JSON."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_OF_A_TRACE = 1 << 20
"""Characters; the reprs beyond are left as text."""


class Room:
    """How much may still be read; negative once a text was left for it."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = _OF_A_TRACE


_room: ContextVar[Room | None] = ContextVar("room", default=None)


@contextmanager
def one_trace() -> Generator[Room]:
    """What is read inside shares one room; outside, nothing is bounded."""
    room = Room()
    before = _room.set(room)
    try:
        yield room
    finally:
        _room.reset(before)


def has_room(text: str) -> bool:
    """Takes the room that reading the text needs; False when there is no more."""
    room = _room.get()
    if room is None or room.left < 0:
        return room is None
    room.left -= len(text)
    return room.left >= 0
