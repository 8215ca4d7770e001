"""The turns of sessions, as far as the room has read them, and reading their traces back from the log. Bounded."""

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from collector.base.errors import Undecodable
from collector.log.port import Record
from collector.records.trace_views import RawTrace, TraceTexts, decode_raw_trace, decode_texts
from collector.records.traces import GetRecord, TraceReader, previous_trace
from evaluators.model import Previous

SESSIONS = 10_000
TURNS = 1_000
TURNS_IN_ALL = 200_000
"""Of all sessions, about 450 bytes each; above it the sessions that were quiet longest are forgotten."""
SESSION_BYTES = 64 << 20
"""Of one session's traces; older ones that do not fit are left out of its verdict."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PlacedTurn:
    """One turn of a session, and the offset of its record."""

    start: int  # Unix nanoseconds
    trace_id: str
    digest: str = field(default="", compare=False)
    offset: int = field(default=0, compare=False)


@dataclass(slots=True)
class _Session:
    turns: list[PlacedTurn] = field(default_factory=list[PlacedTurn])
    starts: dict[str, int] = field(default_factory=dict[str, int])
    is_whole: bool = True  # False: it had more than TURNS turns, so their numbers are unknown

    def drop(self, trace_id: str) -> None:
        start = self.starts.pop(trace_id, None)
        if start is not None:
            del self.turns[bisect_left(self.turns, PlacedTurn(start=start, trace_id=trace_id))]

    def put(self, turn: PlacedTurn) -> None:
        self.drop(turn.trace_id)
        insort(self.turns, turn)
        self.starts[turn.trace_id] = turn.start
        if len(self.turns) > TURNS:
            self.is_whole = False
            self.drop(self.turns[0].trace_id)


class SessionTurns:
    """The newest turns of the newest sessions. Pure."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[bytes, _Session] = OrderedDict()
        self._count = 0  # turns of all sessions

    def add(self, key: bytes, turn: PlacedTurn) -> int | None:
        """Add a turn, or replace its earlier revision; returns its number among the turns read so far, 1-based.

        None: the session is too long for a number.
        """
        session = self._sessions.setdefault(key, _Session())
        self._sessions.move_to_end(key)
        before = len(session.turns)
        session.put(turn)
        self._count += len(session.turns) - before
        while len(self._sessions) > SESSIONS or (
            self._count > TURNS_IN_ALL and len(self._sessions) > 1
        ):
            _, forgotten = self._sessions.popitem(last=False)
            self._count -= len(forgotten.turns)
        return bisect_left(session.turns, turn) + 1 if session.is_whole else None

    def before(self, key: bytes, turn: PlacedTurn, count: int) -> tuple[PlacedTurn, ...]:
        """The turns right before this one among those read so far, oldest first, at most `count`."""
        session = self._sessions.get(key, _Session())
        at = bisect_left(session.turns, turn)
        return tuple(session.turns[max(0, at - count) : at])

    def closed(self, key: bytes, offsets: Iterable[int]) -> None:
        """The session of the records at these offsets closed: later traces belong to a new one."""
        session = self._sessions.get(key)
        if session is None:
            return
        closed = frozenset(offsets)
        for turn in [each for each in session.turns if each.offset in closed]:
            session.drop(turn.trace_id)
            self._count -= 1
        session.is_whole = True
        if not session.turns:
            del self._sessions[key]


async def newest_traces(
    get: GetRecord, partition: int, offsets: Sequence[int]
) -> tuple[msgspec.Raw, ...]:
    """The newest of these traces that the log still has, at most SESSION_BYTES, oldest first."""
    reader = TraceReader(get, partition, _raw_trace)
    traces: list[msgspec.Raw] = []
    size = 0
    for offset in reversed(offsets):
        trace = await reader.trace(offset)
        if trace is None:
            continue
        size += len(bytes(trace))
        if size > SESSION_BYTES:
            break
        traces.append(trace)
    return tuple(reversed(traces))


async def previous_turns(
    get: GetRecord, partition: int, turns: Iterable[PlacedTurn]
) -> tuple[Previous, ...]:
    """Earlier turns as evaluators see them; without texts when the record has expired."""
    reader = TraceReader(get, partition, _raw_trace)
    previous: list[Previous] = []
    for turn in turns:
        trace = await reader.trace(turn.offset)
        texts = TraceTexts() if trace is None else _texts(trace)
        previous.append(previous_trace(turn.trace_id, turn.digest, texts.input, texts.output))
    return tuple(previous)


def _raw_trace(record: Record) -> msgspec.Raw | None:
    found = decode_raw_trace(record.value)
    return found.trace if isinstance(found, RawTrace) else None


def _texts(trace: msgspec.Raw) -> TraceTexts:
    try:
        return decode_texts(trace)
    except Undecodable:
        return TraceTexts()
