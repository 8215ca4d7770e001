"""What writing a closed trace reads: its spans from the log, its earlier record, and itself, by a worker."""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from collector.assembly.closed_traces import ClosingMark
from collector.base.errors import Undecodable
from collector.base.retry import Retry
from collector.log.port import Log
from collector.reading.port import SPANS_MISSING, PackedTrace, ReadJob, Workers
from collector.records.span_refs import Piece, pieces_read, whole_read
from collector.records.traces import TraceRecord, decode_traces


@dataclass(slots=True)
class TraceReading:
    """Waits for the log and for the workers until they answer, or the service stops."""

    log: Log
    workers: Workers
    retry: Retry

    async def traces(self, jobs: Sequence[ReadJob]) -> list[PackedTrace | None]:
        """The trace of each job; None: it can never be read.

        Workers that cannot read a job's spans in the log get their bytes.
        """
        if not jobs:
            return []
        traces = await self._read(jobs)
        again: dict[int, ReadJob] = {}
        for number, trace in enumerate(traces):
            if trace is not None and trace.unread == SPANS_MISSING:
                traces[number] = None
                pieces = await self.known(jobs[number].pieces)
                if pieces:
                    again[number] = replace(jobs[number], pieces=pieces)
        for number, trace in zip(again, await self._read([*again.values()]), strict=True):
            traces[number] = trace
        return traces

    async def known(self, pieces: Sequence[Piece]) -> tuple[bytes, ...]:
        """The bytes of these pieces, but of those that the log has lost."""
        return tuple(each for each in await self.each(pieces) if each is not None)

    async def each(self, pieces: Sequence[Piece]) -> list[bytes | None]:
        return await self.retry.log("fetch spans", lambda: pieces_read(self.log, pieces))

    async def whole(self, pieces: Sequence[Piece]) -> tuple[bytes, ...]:
        return await self.retry.log("fetch spans", lambda: whole_read(self.log, pieces))

    async def newest_record(self, mark: ClosingMark) -> TraceRecord | None:
        """The record that a mark names; None if it has expired or cannot be decoded."""
        position = mark.position
        if position is None:
            return None
        record = await self.retry.log("fetch a trace", lambda: self.log.get(position))
        try:
            decoded = None if record is None else decode_traces(record.value)
        except Undecodable:
            return None
        return decoded if isinstance(decoded, TraceRecord) else None

    async def _read(self, jobs: Sequence[ReadJob]) -> list[PackedTrace | None]:
        if not jobs:
            return []
        return [*await self.retry.workers("read traces", lambda: self.workers.read(jobs))]
