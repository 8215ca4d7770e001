"""A session's input digests, kept incrementally: one running sum per distinct set of trace evaluators read."""

from __future__ import annotations

from collections.abc import Iterable

from collector.records.sessions import SessionTurn
from collector.records.signal import session_input_digest, turn_term

Used = tuple[str, ...]


class RunningInput:
    """Order-free: the digest of a set of turns, whatever the way there."""

    __slots__ = ("_sums",)

    def __init__(self, used: Iterable[Used]) -> None:
        self._sums: dict[Used, int] = dict.fromkeys(used, 0)

    def add(self, entry: SessionTurn) -> None:
        """Count the turn in."""
        for used in self._sums:
            self._sums[used] += _term(entry, used)

    def remove(self, entry: SessionTurn) -> None:
        """Count the turn out, exactly as it was counted in."""
        for used in self._sums:
            self._sums[used] -= _term(entry, used)

    def digest(self, used: Used) -> str:
        """What an evaluator that reads `used` has read."""
        return session_input_digest([self._sums[used]])


def _term(entry: SessionTurn, used: Used) -> int:
    ids = [entry.signal_ids[name] for name in used if name in entry.signal_ids]
    return turn_term(entry.turn.trace_id, entry.turn.digest, ids)
