"""A trace's place in its session, for expectations that name a turn. Bounded; pure."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict

SESSIONS = 10_000
TURNS = 1_000


class Turns:
    """The starts of the newest sessions' turns."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[bytes, list[tuple[int, str]]] = OrderedDict()

    def place(self, key: bytes, start: int, trace_id: str) -> int | None:
        """Its place among those seen so far, 1-based; None: the session is too long to say."""
        turns = self._sessions.setdefault(key, [])
        self._sessions.move_to_end(key)
        if len(self._sessions) > SESSIONS:
            self._sessions.popitem(last=False)
        turn = (start, trace_id)
        at = bisect_left(turns, turn)
        if at == len(turns) or turns[at] != turn:
            if len(turns) >= TURNS:
                return None
            insort(turns, turn)
        return at + 1
