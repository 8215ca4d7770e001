"""Evaluator workers: the port that assembly and scoring call, and its two adapters (processes, inline).

A job is one trace. Ingest never waits for it: decoding and evaluating happen in a small pool of spawned processes
(collector/worker.py), or inline with `workers: 0`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from evaluators.model import Closed, Outcome, Previous, Trace


class ReadJob(msgspec.Struct, frozen=True, kw_only=True, tag="read"):
    """Decode and normalise a closed trace."""

    trace_id: bytes
    pieces: tuple[bytes, ...]
    closed: Closed


class ScoreJob(msgspec.Struct, frozen=True, kw_only=True, tag="score"):
    """Run every trace evaluator that needs no network; `only` limits it to some of them (a rerun of neighbours)."""

    trace: Trace
    history: tuple[Previous, ...] = ()
    """The newest last; at most the evaluators' window."""
    only: tuple[str, ...] | None = None


class Workers(Protocol):
    """Both answer in the order of the jobs; a job whose worker died twice answers as if it could not be done."""

    async def read(self, jobs: Sequence[ReadJob]) -> Sequence[Trace | None]:
        """The normalised traces; None for one that can never be read."""
        ...

    async def score(self, jobs: Sequence[ScoreJob]) -> Sequence[tuple[Outcome, ...]]:
        """The outcomes of each trace; `failed{worker_died}` for every due evaluator when the worker died twice."""
        ...

    async def close(self) -> None:
        """End the workers; waits for none longer than a few seconds."""
        ...
