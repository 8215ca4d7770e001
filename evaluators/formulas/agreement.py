"""Whether runs of one task did the same: the writes that a run made, compared with those of earlier runs.

What all runs of a task change alike is most likely right; a run that changes something else is most likely wrong. It
says nothing for requests that are merely similar.
"""

import hashlib
import struct
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from evaluators.formulas.distribution import rounded
from evaluators.matching.json_values import encoded
from evaluators.model import ToolCall

MOST_RUNS = 20  # newest other runs of a task that a run is compared with
LEAST_RUNS = 2
MOST_WRITES = 256
"""Distinct writes of a run that are compared."""
READS = (
    "get find list search calculate think check look lookup read fetch query can_ run_speed consult describe view show"
    " verify validate buscar obtener listar ver"
)
"""A tool whose name begins with one of these words (in any case) only reads."""
_READS = tuple(READS.split())


def is_write(name: str, read_only: Collection[str] = ()) -> bool:
    """Whether a tool changes something, by its name: it does not begin as reading does, and transfers no one."""
    folded = name.casefold()
    return not (name in read_only or folded.startswith(_READS) or "transfer" in folded)


def writes(calls: Iterable[ToolCall], read_only: Collection[str] = ()) -> tuple[int, ...]:
    """64-bit digests of the distinct writes (tool, arguments) that ended without error, sorted; see `sample`.

    A call whose arguments were not exported is left out: it cannot be distinguished from another one.
    """
    return sample(
        _digest(each)
        for each in calls
        if each.error is None and each.arguments is not None and is_write(each.name, read_only)
    )


def sample(digests: Iterable[int]) -> tuple[int, ...]:
    """The distinct digests in order; of more than MOST_WRITES the least, the same ones in every run that made them."""
    return tuple(sorted(set(digests))[:MOST_WRITES])


def jaccard(one: Collection[int], other: Collection[int]) -> float:
    """Shared over all; 1 when both are empty."""
    union = len({*one, *other})
    return len({*one} & {*other}) / union if union else 1.0


class RunAgreement(NamedTuple):
    score: float  # the mean agreement
    runs: int  # others that it was compared with
    same: int  # of them, those that wrote exactly the same


class TaskRunsHistory:
    """The writes of a task's newest runs, in the order in which they ended. Sessions go by numbers of 64 bits."""

    def __init__(self, runs: Iterable[tuple[int, bytes]] = ()) -> None:
        self._runs = dict(runs)

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[int]:
        return iter(self._runs)

    @property
    def packed(self) -> tuple[tuple[int, bytes], ...]:
        """(session, its writes as bytes), oldest first."""
        return tuple(self._runs.items())

    def put(self, session: int, made: Collection[int]) -> None:
        """A run has ended; one that ended before is replaced, the oldest is forgotten."""
        self._runs.pop(session, None)
        self._runs[session] = struct.pack(f"<{len(made)}Q", *made)
        if (
            len(self._runs) > MOST_RUNS + 1
        ):  # a run that is opened again is not compared with itself
            del self._runs[next(iter(self._runs))]

    def digest(self, session: int) -> str:
        compared = hashlib.sha256()
        for other, made in self._others(session):
            compared.update(struct.pack("<QI", other, len(made)) + made)
        return compared.hexdigest()

    def agreement(self, session: int, made: Collection[int]) -> RunAgreement | None:
        """How far the session did what the newest others did; None: too few of them, or no run wrote anything."""
        others = [
            struct.unpack(f"<{len(packed) // 8}Q", packed) for _, packed in self._others(session)
        ]
        if len(others) < LEAST_RUNS or not (made or any(others)):
            return None
        each = [jaccard(made, other) for other in others]
        return RunAgreement(rounded(sum(each) / len(each)), len(each), each.count(1.0))

    def _others(self, session: int) -> list[tuple[int, bytes]]:
        others = [run for run in reversed(self._runs.items()) if run[0] != session]
        return others[:MOST_RUNS]


def _digest(call: ToolCall) -> int:
    made = call.name.encode(errors="replace") + b"\0" + encoded(call.arguments)
    return int.from_bytes(hashlib.blake2b(made, digest_size=8).digest())
