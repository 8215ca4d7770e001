"""Evaluator workers: the port that assembly and scoring call, and its two adapters (processes, inline).

A job is one trace. Ingest never waits for it: decoding and evaluating happen in a small pool of spawned processes
(collector/pool/worker.py), or inline with `workers: 0`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from collector.records.traces import RunawayRecord
from evaluators.model import Closed, Outcome, Previous, Trace


class ReadJob(msgspec.Struct, frozen=True, kw_only=True, tag="read"):
    """Decode and normalise a closed trace."""

    trace_id: bytes
    pieces: tuple[bytes, ...]
    closed: Closed
    service: str = ""
    """Whose worker time it uses: as the trace's first resource names it; empty: it names none."""


class GlanceJob(msgspec.Struct, frozen=True, kw_only=True, tag="glance"):
    """Look at an open trace as it stands: does it run away?"""

    trace_id: bytes
    pieces: tuple[bytes, ...]
    service: str = ""
    """Whose worker time it uses."""
    is_part: bool = False
    """The pieces are what came since it was looked at last: only the calls of one kind are counted."""
    seen: float
    """Log time of its newest span."""
    revision: int
    """That its next record would have."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a look at an open trace gave."""

    record: RunawayRecord | None = None
    """None: it does not run away, or it cannot be read."""
    repeats_missing: int = 1
    """Repeats that the call that was repeated most lacks until the trace runs away, at least 1."""
    calls: int = 0
    """Of a part: calls of the tool that was called most with the same arguments."""


class ScoreJob(msgspec.Struct, frozen=True, kw_only=True, tag="score"):
    """Run every trace evaluator that needs no network; `only` limits it to some of them (a rerun of neighbours)."""

    trace: Trace
    history: tuple[Previous, ...] = ()
    """The newest last; at most the evaluators' window."""
    only: tuple[str, ...] | None = None
    turn: int | None = None
    """Its position among the session's turns, 1-based; None = unknown."""

    @property
    def service(self) -> str:
        """Whose worker time it uses."""
        return self.trace.service


Job = ReadJob | ScoreJob | GlanceJob
encode_job_into = msgspec.msgpack.Encoder().encode_into
decode_job = msgspec.msgpack.Decoder(Job).decode


class TraceHead(msgspec.Struct, frozen=True, kw_only=True):
    """The few fields of a `Trace` that assembly looks at."""

    trace_id: str
    service: str
    session_id: str
    session_source: str
    gaps: tuple[str, ...] = ()


class PackedTrace(msgspec.Struct, frozen=True, kw_only=True):
    """A trace as a worker packed it: written to the log as it is, without decoding it."""

    head: TraceHead
    packed: msgspec.Raw
    """The msgpack of the `Trace`."""

    def unpack(self) -> Trace:
        """The whole trace."""
        return _trace.decode(self.packed)


_trace = msgspec.msgpack.Decoder(Trace)


class Workers(Protocol):
    """Port to the workers. Answers are in the order of the jobs."""

    async def read(self, jobs: Sequence[ReadJob]) -> Sequence[Trace | PackedTrace | None]:
        """The normalised traces; None for a trace that can never be read."""
        ...

    async def glance(self, job: GlanceJob) -> Seen:
        """Look at an open trace.

        Raises:
            Retryable: the worker died on it, or the service stops. It is not tried again.
        """
        ...

    async def score(self, jobs: Sequence[ScoreJob]) -> Sequence[tuple[Outcome, ...]]:
        """The outcomes of each trace; `failed{worker_died}` for every due evaluator when the worker died twice."""
        ...

    def hasten(self) -> None:
        """The service stops: jobs that are not answered within a few seconds, and later ones, raise Retryable."""
        ...

    async def close(self) -> None:
        """End the workers, each within a few seconds."""
        ...
