"""The sliding window of one session. Pure: what is in it depends on the set of traces, never on their arrival.

    (start, trace id)  ->  oldest ............................ newest
                           slides out by max_traces, max_age   output text kept for the newest 8

A trace's age is the distance of its start from the newest start among its like: the same live, replayed and offline.
Traces that are no turn are held beside the turns, within the same limits, and move none of them: so no set of turns
comes back once it has been another, and what a session says of a set it says once.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from typing import overload

import msgspec

from collector.records.sessions import SessionTurn
from collector.records.signal import session_input_digest, turn_term
from collector.scoring.running_input import RunningInput, Used
from collector.scoring.turn import is_turn, let_go
from evaluators.model import Turn

KEPT = 8
Key = tuple[int, str]


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """What placing a trace did."""

    inside: bool
    """False: it is older than the window reaches, and was not kept."""
    left: tuple[SessionTurn, ...] = ()
    affected: tuple[str, ...] = ()
    """Turns whose predecessors changed, in order, without the placed one."""
    let_go: tuple[str, ...] = ()
    """Turns whose output text is no longer kept."""


class SessionWindow:
    """Turns in the order of (start, trace id), and beside them the traces that are no turn: they neighbour nobody."""

    __slots__ = (
        "_entries",
        "_input",
        "_max_age",
        "_max_traces",
        "_others",
        "_reach",
        "_seen",
        "_turns",
    )

    def __init__(
        self, *, max_traces: int, max_age: float, history: int, used: Iterable[Used]
    ) -> None:
        self._max_traces = max_traces
        self._max_age = int(max_age * 1e9)
        self._reach = history
        self._entries: dict[str, SessionTurn] = {}
        self._turns: list[Key] = []
        self._others: list[Key] = []
        self._seen: list[float] = []
        self._input = RunningInput(used)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[SessionTurn]:
        return (self._entries[trace_id] for _start, trace_id in merge(self._turns, self._others))

    @property
    def turns(self) -> Sequence[Turn]:
        """The turns in order: a view, nothing is copied."""
        return _Turns(self._turns, self._entries)

    @property
    def newest(self) -> SessionTurn | None:
        """The newest turn by (start, trace id), or the newest trace when there is no turn; it names the agent."""
        order = self._turns or self._others
        return self._entries[order[-1][1]] if order else None

    @property
    def seen(self) -> float:
        """Log time at which the newest span of any turn was first seen (of any trace, when there is no turn)."""
        if self._seen:
            return self._seen[-1]
        return max((entry.seen for entry in self._entries.values()), default=0.0)

    def input_digest(self, used: Used) -> str:
        """What a formula that reads `used` has read; without a turn, which traces it found to be none.

        No window without turns is another's: a session may be in that state more than once, and says so anew.
        """
        if self._turns or not self._others:
            return self._input.digest(used)
        return session_input_digest(
            turn_term(each.turn.trace_id, each.turn.digest, ()) for each in self
        )

    def get(self, trace_id: str) -> SessionTurn | None:
        """The trace, if it is in the window."""
        return self._entries.get(trace_id)

    def before(self, entry: SessionTurn) -> tuple[SessionTurn, ...]:
        """Its History: the turns right before it, the newest last; nothing is before a trace that is no turn."""
        if not is_turn(entry):
            return ()
        place = bisect_left(self._turns, _key(entry))
        return tuple(
            self._entries[trace_id]
            for _start, trace_id in self._turns[max(0, place - self._reach) : place]
        )

    def place_of(self, entry: SessionTurn) -> int | None:
        """Its place among the turns held, 1-based; None for what is no turn or not held."""
        place = bisect_left(self._turns, _key(entry))
        return place + 1 if place < len(self._turns) and self._turns[place] == _key(entry) else None

    def put_back(self, entry: SessionTurn) -> None:
        """After a restart: as it was, nothing slides."""
        self._insert(entry)

    def place(self, entry: SessionTurn) -> Placed:
        """Put a trace where it belongs, in place of its earlier revision."""
        affected: set[str] = set()
        held = self._entries.get(entry.turn.trace_id)
        if held is not None:
            affected.update(self._after(_key(held)))
            self._remove(held)
        self._insert(entry)
        affected.update(self._after(_key(entry)) if is_turn(entry) else ())
        left = tuple(self._slide())
        if any(is_turn(each) for each in left):
            affected.update(self._following(0))
        inside = entry.turn.trace_id in self._entries
        if not inside and held is None:
            return Placed(inside=False)
        gone = (held,) if held is not None and not inside else ()
        own = {entry.turn.trace_id}
        return Placed(
            inside=inside,
            left=(*(each for each in left if each is not entry), *gone),
            affected=self._in_order(affected - own),
            let_go=tuple(self._let_go(entry)),
        )

    def settle(self, entry: SessionTurn) -> None:
        """Its outcomes are known: replace it where it stands."""
        held = self._entries[entry.turn.trace_id]
        if is_turn(entry):
            self._input.remove(held)
            self._input.add(entry)
        self._entries[entry.turn.trace_id] = entry

    def _insert(self, entry: SessionTurn) -> None:
        self._entries[entry.turn.trace_id] = entry
        if not is_turn(entry):
            insort(self._others, _key(entry))
            return
        insort(self._turns, _key(entry))
        insort(self._seen, entry.seen)
        self._input.add(entry)

    def _remove(self, entry: SessionTurn) -> None:
        del self._entries[entry.turn.trace_id]
        if not is_turn(entry):
            del self._others[bisect_left(self._others, _key(entry))]
            return
        del self._turns[bisect_left(self._turns, _key(entry))]
        del self._seen[bisect_left(self._seen, entry.seen)]
        self._input.remove(entry)

    def _slide(self) -> Iterator[SessionTurn]:
        for order in (self._turns, self._others):
            while len(order) > self._max_traces or self._is_too_old(order):
                entry = self._entries[order[0][1]]
                self._remove(entry)
                yield entry

    def _is_too_old(self, order: Sequence[Key]) -> bool:
        """Whether the first is further from the newest than the window reaches."""
        return bool(order) and order[0][0] < order[-1][0] - self._max_age

    def _let_go(self, entry: SessionTurn) -> Iterator[str]:
        """Only the newest keep their text: the one that was pushed out, and the placed one when it is older still."""
        pushed = self._turns[-KEPT - 1][1] if len(self._turns) > KEPT else None
        for trace_id in {entry.turn.trace_id, pushed} - {None}:
            held = self._entries.get(trace_id or "")
            if held is None or not held.kept or self._keeps_text(held):
                continue
            self._entries[held.turn.trace_id] = let_go(held)
            yield held.turn.trace_id

    def _keeps_text(self, entry: SessionTurn) -> bool:
        return is_turn(entry) and _key(entry) >= self._turns[max(0, len(self._turns) - KEPT)]

    def _after(self, key: Key) -> list[str]:
        """The turns whose History reaches back to this place."""
        place = bisect_left(self._turns, key)
        found = place < len(self._turns) and self._turns[place] == key
        return self._following(place + found)

    def _following(self, place: int) -> list[str]:
        return [trace_id for _start, trace_id in self._turns[place : place + self._reach]]

    def _in_order(self, trace_ids: Iterable[str]) -> tuple[str, ...]:
        inside = (self._entries[each] for each in trace_ids if each in self._entries)
        return tuple(entry.turn.trace_id for entry in sorted(inside, key=_key))


class _Turns(Sequence[Turn]):
    """The window's turns without a copy: an update must cost the same at 10 and at 1000."""

    __slots__ = ("_entries", "_order")

    def __init__(self, order: list[Key], entries: dict[str, SessionTurn]) -> None:
        self._order = order
        self._entries = entries

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, index: int) -> Turn: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Turn]: ...
    def __getitem__(self, index: int | slice) -> Turn | Sequence[Turn]:
        if isinstance(index, slice):
            return [self._entries[trace_id].turn for _start, trace_id in self._order[index]]
        return self._entries[self._order[index][1]].turn


def _key(entry: SessionTurn) -> Key:
    return (entry.turn.start_time_unix_nano, entry.turn.trace_id)
