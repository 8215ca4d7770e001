"""Which signals count, and as what."""

from __future__ import annotations

from array import array
from typing import get_args

from collector.records.signal_batch import SignalHeader, SubjectHeader
from evaluators.model import Reason

_BITS = (1 << 64) - 1
_EMPTY = 0
_PLACES = 2
"""Places of a table for each id that it takes: it is never more than half full."""


class CountedIds:
    """Knows the newest `least` ids, and up to twice as many.

    Two tables of hashes, 64 bits each: when the younger one has `least` ids it becomes the older one, and what was the
    older one is forgotten. A new id is taken for a known one once in 10^14. Nothing of this is stored: the hashes
    differ from process to process.
    """

    def __init__(self, least: int) -> None:
        self._least = least
        self._young = _table(least)
        self._old = _table(least)
        self._count = 0  # ids of the younger table

    def add(self, id_: str) -> bool:
        number = hash(id_) & _BITS or 1
        at = _place(self._young, number)
        if self._young[at] == number:
            return False
        is_new = self._old[_place(self._old, number)] != number
        self._young[at] = number
        self._count += 1
        if self._count >= self._least:
            self._old, self._young, self._count = self._young, _table(self._least), 0
        return is_new


def _table(least: int) -> array[int]:
    return array("Q", [_EMPTY]) * (_PLACES * least)


def _place(table: array[int], number: int) -> int:
    at = number % len(table)
    while table[at] not in (_EMPTY, number):
        at = (at + 1) % len(table)
    return at


SKIPPED: frozenset[str] = frozenset(get_args(Reason))
"""Why something is skipped: the signal's own closed list."""


def outcome_of(signal: SignalHeader) -> str | None:
    """The value of label `outcome`: pass, fail, error or not_applicable; None: a score without pass or fail."""
    if signal.outcome == "failed":
        return "error"
    if signal.outcome == "not_applicable":
        return "not_applicable"
    if signal.success is not None:
        return "pass" if signal.success else "fail"
    if signal.threshold is None:
        return None
    return "pass" if (signal.score or 0.0) >= signal.threshold else "fail"


def exemplar(subject: SubjectHeader) -> dict[str, str] | None:
    """The ids of the scored span; None for a session. An exemplar has at most 128 characters: only fixed lengths."""
    trace_id, span_id = subject.trace_id, subject.span_id
    if trace_id is None or len(trace_id) != 32:
        return None
    if span_id is None or len(span_id) != 16:
        return {"trace_id": trace_id}
    return {"trace_id": trace_id, "span_id": span_id}
