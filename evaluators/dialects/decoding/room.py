"""What may be spent on reading the Python reprs of one trace: they are read a hundred times more slowly than JSON."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_OF_A_TRACE = 1 << 20
"""Characters; the reprs beyond are left as text."""


class Room:
    """What one trace may still cost, and whether something was left out for it."""

    __slots__ = ("is_short", "left")

    def __init__(self) -> None:
        self.left = _OF_A_TRACE
        """Characters of reprs; negative once a text was left as it is."""
        self.is_short = False
        """Whether a search ended before it had looked at every candidate."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing was left out."""
        return self.left >= 0 and not self.is_short


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


def search_short() -> None:
    """A search among the trace's calls ended before it had looked at every candidate."""
    room = _room.get()
    if room is not None:
        room.is_short = True
