"""The turns of sessions as far as the room has read them: a trace's place, and which come before it. Bounded; pure."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

SESSIONS = 10_000
TURNS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SeenTurn:
    """One turn, and where its record is."""

    start: int
    trace_id: str
    digest: str = field(default="", compare=False)
    offset: int = field(default=0, compare=False)


@dataclass(slots=True)
class _Seen:
    turns: list[SeenTurn] = field(default_factory=list[SeenTurn])
    starts: dict[str, int] = field(default_factory=dict[str, int])
    is_whole: bool = True
    """False: it had more turns than are kept, so that nobody can say which place one has."""

    def drop(self, trace_id: str) -> None:
        start = self.starts.pop(trace_id, None)
        if start is not None:
            del self.turns[bisect_left(self.turns, SeenTurn(start=start, trace_id=trace_id))]

    def put(self, turn: SeenTurn) -> None:
        self.drop(turn.trace_id)
        insort(self.turns, turn)
        self.starts[turn.trace_id] = turn.start
        if len(self.turns) > TURNS:
            self.is_whole = False
            self.drop(self.turns[0].trace_id)


class Turns:
    """The newest turns of the newest sessions."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[bytes, _Seen] = OrderedDict()

    def place(self, key: bytes, turn: SeenTurn) -> int | None:
        """Take it in, in place of its earlier revision; its place among those seen so far, 1-based.

        None: the session is too long to say.
        """
        session = self._sessions.setdefault(key, _Seen())
        self._sessions.move_to_end(key)
        if len(self._sessions) > SESSIONS:
            self._sessions.popitem(last=False)
        session.put(turn)
        return bisect_left(session.turns, turn) + 1 if session.is_whole else None

    def before(self, key: bytes, turn: SeenTurn, count: int) -> tuple[SeenTurn, ...]:
        """The turns right before it among those seen so far, oldest first, at most `count`."""
        session = self._sessions.get(key, _Seen())
        at = bisect_left(session.turns, turn)
        return tuple(session.turns[max(0, at - count) : at])

    def closed(self, key: bytes, offsets: Iterable[int]) -> None:
        """The session of the records at these offsets closed: what comes later has other predecessors."""
        session = self._sessions.get(key)
        if session is None:
            return
        gone = frozenset(offsets)
        for turn in [each for each in session.turns if each.offset in gone]:
            session.drop(turn.trace_id)
        session.is_whole = True
        if not session.turns:
            del self._sessions[key]
