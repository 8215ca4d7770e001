"""The sliding window of one session. Pure: its content depends on the set of traces, never on their arrival.

    (start, trace id)  ->  oldest ............................ newest
    (seen, start, ...) ->  slides out by max_traces, max_age

The start is the sender's word, so it only orders, and counts as at most a day after the trace was seen. Age is a
matter of log time, the distance of `seen` from the newest: a turn dated a year ahead removes no other one.
A turn is a trace that called a model or a tool, or in which agents took steps. Other traces are kept in a separate list
with the same limits. They never evict a turn, so a set of turns never recurs and each score of a set is published once.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import InitVar, dataclass, field
from heapq import merge
from typing import overload

import msgspec

from collector.records.sessions import SessionTurn
from collector.records.signal import session_input_digest, turn_term
from collector.scoring.running import (
    TOOL_COST,
    WRITE_COST,
    RunningInput,
    RunningUses,
    RunningWork,
    Used,
)
from evaluators.model import Turn

TURN_COST = 1_950
"""Bytes that a trace of the window takes besides its outcomes, from what tracemalloc says."""
CALL_COST = 400  # bytes of a distinct tool call of a turn, here and in the running states
RESTING_TURN = 100  # bytes that a trace takes while its session rests, besides its outcomes
RESTING_CALL = 20  # bytes of a distinct tool call, or of a write, of such a trace
LATEST_START = 86_400.0  # seconds after a trace was seen: a later start is taken for this one where traces are ordered
Key = tuple[tuple[int, int], str]
"""((start as it counts, start as it was sent), trace id); starts in unix nanoseconds."""
Age = tuple[float, Key]  # (log time at which the newest span was seen, place in the order)


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that placing a trace made."""

    inside: bool  # False: it is older than the window reaches, and was not kept
    removed: tuple[SessionTurn, ...] = ()  # traces that left the window
    affected: tuple[str, ...] = ()
    """Turns whose predecessors changed, in order, without the placed one."""


@dataclass(slots=True, kw_only=True, eq=False)
class SlidingWindow:
    """The traces of one session, in the order of (start, trace id)."""

    max_traces: int
    max_age: float  # seconds
    history: int  # how many earlier turns an evaluator sees
    used: InitVar[Iterable[Used]]
    _entries: dict[str, SessionTurn] = field(default_factory=dict[str, SessionTurn])
    _turns: list[Key] = field(default_factory=list[Key])
    _others: list[Key] = field(default_factory=list[Key])
    _turn_ages: list[Age] = field(default_factory=list[Age])
    _other_ages: list[Age] = field(default_factory=list[Age])
    _input: RunningInput = field(init=False)
    work: RunningWork = field(default_factory=RunningWork)  # of the turns
    uses: RunningUses = field(default_factory=RunningUses)  # of the turns
    cost: int = 0
    """Bytes of memory that its traces take, their outcomes apart: a function of what the log holds of them."""
    resting: int = 0  # the same while the session rests

    def __post_init__(self, used: Iterable[Used]) -> None:
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
    def is_piece(self) -> bool:
        """Whether every trace is only a piece of another session's turn: then nothing is said of this session."""
        return bool(self._entries) and not self._turns and all(each.turn.is_part for each in self)

    @property
    def newest(self) -> SessionTurn | None:
        """The newest turn by (start, trace id), or the newest trace when there is no turn; it names the agent."""
        order = self._turns or self._others
        return self._entries[order[-1][1]] if order else None

    @property
    def seen(self) -> float:
        """Log time at which the newest span of any turn was first seen (of any trace, when there is no turn)."""
        ages = self._turn_ages or self._other_ages
        return ages[-1][0] if ages else 0.0

    def input_digest(self, used: Used) -> str:
        """The digest of the turns and of their signals by the evaluators `used`.

        Windows without turns get a digest of their trace ids, so that each such window has an id of its own.
        """
        if self._turns or not self._others:
            return self._input.digest(used)
        return session_input_digest(
            turn_term(each.turn.trace_id, each.turn.digest, ()) for each in self
        )

    def get(self, trace_id: str) -> SessionTurn | None:
        return self._entries.get(trace_id)

    def newest_turns(self, count: int) -> tuple[str, ...]:
        return tuple(trace_id for _start, trace_id in self._turns[-count:])

    def before(self, entry: SessionTurn) -> tuple[SessionTurn, ...]:
        """Its History: the turns right before it, the newest last; empty for a trace that is not a turn."""
        if not is_turn(entry):
            return ()
        index = bisect_left(self._turns, _key(entry))
        return tuple(
            self._entries[trace_id]
            for _start, trace_id in self._turns[max(0, index - self.history) : index]
        )

    def number_of(self, entry: SessionTurn) -> int | None:
        """Its place among the turns of the window, 1-based; None: not a turn, or not in the window."""
        key = _key(entry)
        index = bisect_left(self._turns, key)
        return index + 1 if self._turns[index : index + 1] == [key] else None

    def restore(self, entry: SessionTurn) -> None:
        self._insert(entry)

    def place(self, entry: SessionTurn) -> Placement:
        """Put a trace where it belongs, in place of its earlier revision."""
        affected: set[str] = set()
        earlier = self._entries.get(entry.turn.trace_id)
        if earlier is not None:
            affected.update(self._after(_key(earlier)))
            self._remove(earlier)
        key = self._insert(entry)
        if is_turn(entry) and key != self._turns[-1]:
            affected.update(self._after(key))
        removed = tuple(self._slide())
        # Turns that stay have lost predecessors.
        for left in filter(is_turn, removed):
            affected.update(self._after(_key(left)))
        inside = entry.turn.trace_id in self._entries
        if not inside and earlier is None:
            return Placement(inside=False)
        removed = tuple(each for each in removed if each is not entry)
        # A revision may start so early that the trace leaves the window with it.
        if earlier is not None and not inside:
            removed = (*removed, earlier)
        return Placement(
            inside=inside,
            removed=removed,
            affected=self._in_order(affected - {entry.turn.trace_id}) if affected else (),
        )

    def replace(self, entry: SessionTurn) -> None:
        if is_turn(entry):
            self._input.replace(self._entries[entry.turn.trace_id], entry)
        self._entries[entry.turn.trace_id] = entry

    def _insert(self, entry: SessionTurn) -> Key:
        self._entries[entry.turn.trace_id] = entry
        self._charge(entry, 1)
        key = _key(entry)
        if not is_turn(entry):
            insort(self._others, key)
            insort(self._other_ages, (entry.seen, key))
            return key
        insort(self._turns, key)
        insort(self._turn_ages, (entry.seen, key))
        self._count(entry, 1)
        return key

    def _remove(self, entry: SessionTurn) -> None:
        self._charge(self._entries.pop(entry.turn.trace_id), -1)
        if not is_turn(entry):
            del self._others[bisect_left(self._others, _key(entry))]
            del self._other_ages[bisect_left(self._other_ages, _age(entry))]
            return
        del self._turns[bisect_left(self._turns, _key(entry))]
        del self._turn_ages[bisect_left(self._turn_ages, _age(entry))]
        self._count(entry, -1)

    def _count(self, entry: SessionTurn, sign: int) -> None:
        self._input.count(entry, sign)
        self.work.count(entry.turn, sign)
        self.uses.count(entry.turn, sign)

    def _charge(self, entry: SessionTurn, sign: int) -> None:
        turn = entry.turn
        calls, writes = len(turn.call_counts), len(turn.writes)
        others = text_size(entry.agent) + CALL_COST * calls + WRITE_COST * writes
        others += TOOL_COST * len(turn.tools)
        self.cost += sign * (TURN_COST + others)
        self.resting += sign * (RESTING_TURN + RESTING_CALL * (calls + writes))

    def _slide(self) -> Iterator[SessionTurn]:
        for ages in (self._turn_ages, self._other_ages):
            while len(ages) > self.max_traces or self._is_too_old(ages):
                _seen, (_start, trace_id) = ages[0]
                entry = self._entries[trace_id]
                self._remove(entry)
                yield entry

    def _is_too_old(self, ages: Sequence[Age]) -> bool:
        return bool(ages) and ages[0][0] < ages[-1][0] - self.max_age

    def _after(self, key: Key) -> list[str]:
        index = bisect_left(self._turns, key)
        index += index < len(self._turns) and self._turns[index] == key  # not itself
        return [trace_id for _start, trace_id in self._turns[index : index + self.history]]

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


def ordered_start(entry: SessionTurn) -> int:
    """The start by which the trace is ordered, unix nanoseconds: the one sent, or LATEST_START where that is later."""
    return min(entry.turn.start_time_unix_nano, int((entry.seen + LATEST_START) * 1e9))


def _key(entry: SessionTurn) -> Key:
    return ((ordered_start(entry), entry.turn.start_time_unix_nano), entry.turn.trace_id)


def _age(entry: SessionTurn) -> Age:
    return (entry.seen, _key(entry))


def text_size(text: str | None) -> int:
    """Bytes that a text takes at most: one for each character, four where one of them is not ASCII."""
    if text is None:
        return 0
    return len(text) if text.isascii() else 4 * len(text)


def is_turn(entry: SessionTurn) -> bool:
    """Whether the trace called a model or a tool, or agents took steps in it; session formulas read no other traces."""
    return bool(entry.turn.model_calls or entry.turn.tool_calls)
