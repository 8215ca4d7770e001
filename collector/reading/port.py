"""Evaluator workers: the port that rooms call, and its two adapters (processes, inline).

A job is one trace. Ingest never waits for it: decoding and evaluating happen in a small pool of spawned processes
(collector/reading/worker.py), or inline with `workers: 0`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import msgspec

from collector.config.plan import PlanSettings, keys_from, part_of, plan_settings
from collector.otlp.redaction import RedactionSettings
from collector.records.span_refs import Piece
from collector.records.traces import RunawayRecord
from evaluators.dialects.content.sessions import Keys
from evaluators.model import Closed, Outcome, Previous, Session, Trace

if TYPE_CHECKING:
    from collector.config.tree import Config


class ReaderSettings(msgspec.Struct, frozen=True, kw_only=True):
    plan: PlanSettings
    keys: Keys
    read_only: tuple[str, ...]  # tools that change nothing: `tasks.read_only`
    redaction: RedactionSettings
    log: str | None
    """The folder of the log on this disk, in which jobs name spans; None: jobs bring their spans."""


def reader_settings(config: Config, package: str = "") -> ReaderSettings:
    """Those of a configuration; `package`: of a process that runs the evaluators of this third party."""
    return ReaderSettings(
        plan=part_of(plan_settings(config), package),
        keys=keys_from(config),
        read_only=config.tasks.read_only,
        redaction=RedactionSettings.of(config),
        log=str(config.data_dir / "log") if config.log.kind == "disk" else None,
    )


SPANS_MISSING = "spans_missing"
"""`Trace.unread` of a job whose spans the worker cannot read in the log: whoever holds the log sends their bytes."""


class Stays(msgspec.Struct, frozen=True, kw_only=True):
    """The session in which a trace first closed: its revisions stay there."""

    service: str
    session_id: str
    session_source: str

    def keep(self, trace: Trace) -> tuple[Trace, bool]:
        """The trace in this session, and whether it would have moved."""
        moved = (trace.service, trace.session_id) != (self.service, self.session_id)
        if not moved and trace.session_source == self.session_source:
            return trace, False
        return replace(
            trace,
            service=self.service,
            session_id=self.session_id,
            session_source=self.session_source,
        ), moved


class ReadJob(msgspec.Struct, frozen=True, kw_only=True, tag="read"):
    """Decode and normalise a closed trace, and run every evaluator that needs nothing else."""

    trace_id: bytes
    pieces: tuple[Piece, ...]  # the raw spans, or their places in the log
    closed: Closed
    service: str = ""  # whose worker time it uses: as the trace's first resource names it; empty: it names none
    stays: Stays | None = None  # of a revision; None: the trace's spans name its session
    is_made: bool = False
    """Its id is ours: it goes by the id of the trace in which its turn was sent, where it was sent in one."""
    is_scored: bool = True
    """False: its evaluators are not run, because the workers that ran them died."""

    def kept(self, trace: Trace) -> tuple[Trace, bool]:
        """The trace in the session where a revision stays, and whether it would have moved."""
        return (trace, False) if self.stays is None else self.stays.keep(trace)


class GlanceJob(msgspec.Struct, frozen=True, kw_only=True, tag="glance"):
    """Look at an open trace as it stands: does it run away?"""

    trace_id: bytes
    pieces: tuple[Piece, ...]  # as of `ReadJob`
    service: str = ""  # whose worker time it uses
    is_part: bool = False
    """The pieces are what came since it was looked at last: only the calls of one kind are counted."""
    seen: float  # log time of its newest span
    revision: int  # that its next record would have


class GlanceResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a look at an open trace gave."""

    record: RunawayRecord | None = None  # None: it does not run away, or it cannot be read
    repeats_missing: int = 1  # repeats that the call that was repeated most lacks until the trace runs away, at least 1
    call_share: float = 1.0  # how many of the spans are model calls; never 0, the next ones may be
    calls: int = 0  # of a part: calls of the tool that was called most with the same arguments


class PluginJob(msgspec.Struct, frozen=True, kw_only=True, tag="plugin"):
    """Run one evaluator of a third party, which a death or a time-out then names."""

    evaluator: str
    trace: msgspec.Raw = msgspec.Raw(b"\xc0")  # the msgpack of the `Trace`
    session: Session | None = None  # the closed session, for an evaluator of sessions
    history: tuple[Previous, ...] = ()  # the newest last; at most the evaluators' window
    turn: int | None = None  # its position among the session's turns, 1-based; None = unknown
    service: str = ""  # whose worker time it uses


Job = ReadJob | PluginJob | GlanceJob  # on its way to a worker
encode_job_into = msgspec.msgpack.Encoder().encode_into
decode_job = msgspec.msgpack.Decoder(Job).decode


class PackedTrace(msgspec.Struct, frozen=True, kw_only=True):
    """A trace as a worker packed it: written to the log as it is, without decoding it."""

    service: str
    session_id: str
    gaps: tuple[str, ...] = ()
    unread: str | None = None
    session_changed: bool = False  # its spans name another session than the one in which it stays
    randomness: int | None = None  # see `TraceRecord`
    packed: bytes  # the msgpack of the `Trace`
    summary: bytes = b""
    """The msgpack of its summary, for its record; empty: there is no room for it."""
    outcomes: bytes = b""  # the same of what evaluators say of it (`TraceOutcomes`)


class Workers(Protocol):
    """Port to the workers. Answers are in the order of the jobs."""

    async def read(self, jobs: Sequence[ReadJob]) -> Sequence[PackedTrace | None]:
        """The normalised traces; None for a trace that can never be read."""
        ...

    async def glance(self, job: GlanceJob) -> GlanceResult:
        """Look at an open trace.

        Raises:
            Retryable: the worker died on it, or the service stops. It is not tried again.
        """
        ...

    async def plugin(self, job: PluginJob) -> Outcome:
        """The outcome of one evaluator: `failed` where it ended its process or took too long."""
        ...

    def hasten(self) -> None:
        """The service stops: jobs that are not answered within a few seconds, and later ones, raise Retryable."""
        ...

    async def close(self) -> None:
        """End the workers, each within a few seconds."""
        ...
