"""The input digests of a session's window, kept up to date turn by turn. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias

from collector.records.sessions import SessionTurn
from collector.records.signal import session_input_digest, turn_term

Used: TypeAlias = tuple[str, ...]
"""Names of the trace evaluators that a session evaluator reads, sorted."""


class RunningInput:
    """The window's input digests, kept incrementally: one running sum per distinct set of trace evaluators read.

    A sum does not depend on the order in which turns are added and removed.
    """

    __slots__ = ("_sums",)

    def __init__(self, used: Iterable[Used]) -> None:
        self._sums: dict[Used, int] = dict.fromkeys(used, 0)

    def add(self, entry: SessionTurn) -> None:
        for used in self._sums:
            self._sums[used] += _term(entry, used)

    def remove(self, entry: SessionTurn) -> None:
        """Subtract the turn exactly as it was added."""
        for used in self._sums:
            self._sums[used] -= _term(entry, used)

    def replace(self, earlier: SessionTurn, entry: SessionTurn) -> None:
        """The same turn with other signals: only sums that read them change."""
        for used in self._sums:
            was, now = _read(earlier, used), _read(entry, used)
            if was != now:
                turn = entry.turn
                more = _turn_term(turn.trace_id, turn.digest, now)
                self._sums[used] += more - _turn_term(turn.trace_id, turn.digest, was)

    def digest(self, used: Used) -> str:
        """Of the turns and their signals by the evaluators `used`."""
        return session_input_digest([self._sums[used]])


def _read(entry: SessionTurn, used: Used) -> tuple[str, ...]:
    ids = entry.signal_ids
    return tuple([ids[name] for name in used if name in ids]) if ids else ()


def _term(entry: SessionTurn, used: Used) -> int:
    return _turn_term(entry.turn.trace_id, entry.turn.digest, _read(entry, used))


_turn_term = lru_cache(maxsize=64)(turn_term)
"""A turn without signals has one term, whatever reads them."""
