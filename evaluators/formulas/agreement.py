"""Whether runs of one task did the same: the writes that a run made, compared with those of earlier runs.

What all runs of a task change alike is most likely right; a run that changes something else is most likely wrong. It
says nothing for requests that are merely similar.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from itertools import islice

from evaluators.formulas.distribution import rounded
from evaluators.matching.json_values import encoded
from evaluators.model import ToolCall

MOST_RUNS = 20
"""Newest other runs of a task that a run is compared with."""
LEAST_RUNS = 2
MOST_WRITES = 1000
"""Distinct writes of a run that are compared."""
READS = (
    "get find list search calculate think check look lookup read fetch query can_ run_speed consult describe view show"
    " verify validate buscar obtener listar ver"
)
"""A tool whose name begins with one of these words (in any case) only reads."""
_READS = tuple(READS.split())


def is_write(name: str, read_only: Collection[str] = ()) -> bool:
    """Whether a tool changes something, by its name: it does not begin as reading does, and transfers nobody."""
    folded = name.casefold()
    return not (name in read_only or folded.startswith(_READS) or "transfer" in folded)


def writes(calls: Iterable[ToolCall], read_only: Collection[str] = ()) -> frozenset[int]:
    """64-bit digests of the distinct writes (tool, arguments) that ended without error."""
    made = (
        _digest(each) for each in calls if each.error is None and is_write(each.name, read_only)
    )
    return frozenset(islice(made, MOST_WRITES))


def jaccard(one: frozenset[int], other: frozenset[int]) -> float:
    """Shared over all; 1 when both are empty."""
    union = len(one | other)
    return len(one & other) / union if union else 1.0


class TaskRunsHistory:
    """The writes of a task's newest runs, in the order in which they ended."""

    def __init__(self) -> None:
        self._runs: dict[str, frozenset[int]] = {}

    def __len__(self) -> int:
        return len(self._runs)

    def put(self, session: str, made: frozenset[int]) -> str | None:
        """A run has ended; one that ended before is replaced. Returns the oldest one, if it is forgotten."""
        self._runs.pop(session, None)
        self._runs[session] = made
        if (
            len(self._runs) <= MOST_RUNS + 1
        ):  # a run that is opened again is not compared with itself
            return None
        oldest = next(iter(self._runs))
        del self._runs[oldest]
        return oldest

    def agreement(self, session: str, made: frozenset[int]) -> tuple[float, int] | None:
        """The mean agreement with the newest other runs and their number; None: too few, or no run wrote anything."""
        others = [runs for name, runs in reversed(self._runs.items()) if name != session]
        others = others[:MOST_RUNS]
        if len(others) < LEAST_RUNS or not (made or any(others)):
            return None
        return rounded(sum(jaccard(made, each) for each in others) / len(others)), len(others)


def _digest(call: ToolCall) -> int:
    made = call.name.encode(errors="replace") + b"\0" + encoded(call.arguments)
    return int.from_bytes(hashlib.blake2b(made, digest_size=8).digest())
