"""A reader of the log for the backend under `forward`: what is common to all spans and to the traces that are kept.

Nothing waits for it. While the backend is away the commit stays, and what it has not got waits in the log for as long
as the log keeps it. A crash sends at most the requests since the last commit again.
"""

import asyncio
import logging
import time
from dataclasses import dataclass

from collector.base.retry import Retry, Seldom
from collector.base.telemetry import Telemetry
from collector.forward.backend import Backends, StopCameFirst
from collector.log.consumer import Consumer
from collector.log.port import BACKGROUND_LINGER, Assigned, Batch, Commit, Log, Record

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """From the log to the backend.

    `has_begun` is set once the partitions that a reader has got first are committed: what is written from then on is
    sent. `drains`: the process will not come back, so a stop sends what the log holds.
    """

    log: Log
    backends: Backends
    telemetry: Telemetry
    has_begun: asyncio.Event
    drains: bool = False


class BackendReader(Consumer):
    """One member of a group that reads for the backend; `name` is in log lines."""

    def __init__(self, way: Way, name: str, *, group: str, topic: str, max_records: int) -> None:
        super().__init__(
            log=way.log,
            group=group,
            topic=topic,
            retry=Retry(name),
            telemetry=way.telemetry,
            max_records=max_records,
            linger=BACKGROUND_LINGER,
        )
        self._way = way
        self._backends = way.backends
        self._stopping = asyncio.Event()
        self._expiries = Seldom(time.monotonic)
        self._begins: dict[int, int] = {}
        """By partition that no one has read before: where it ended when this member got it, until a record comes."""

    async def run(self, stopping: asyncio.Event) -> None:
        """Read until `stopping` is set; the request in hand has a few seconds then."""
        self._stopping = stopping
        try:
            await super().run(stopping)
        except* StopCameFirst:
            pass
        finally:
            for backend in self._backends:
                await backend.close()

    async def assign(self, assigned: Assigned) -> None:
        """Begin at the end where no one has read before: a backend is not sent a log's whole history."""
        partition = assigned.partition
        self._begins.pop(partition, None)
        if assigned.offset is None:
            end = await self._end(partition)
            await self._commit_to(partition, end, self._first_metadata(end))
            self._begins[partition] = end
        self._way.has_begun.set()

    def _first_metadata(self, end: int) -> int | None:
        """Of the first commit of all, which is at the end."""
        del end
        return None

    async def finish(self) -> None:
        if self._way.drains:
            self._at_end.clear()
            while not self._has_read_all:
                await self.step()
        await self.commit()

    async def _end(self, partition: int) -> int:
        return await self._retry.log(
            "find its place", lambda: self._log_port.end(self._topic, partition)
        )

    async def _commit_to(self, partition: int, offset: int, metadata: int | None = None) -> None:
        commit = Commit(
            group=self._group,
            topic=self._topic,
            partition=partition,
            offset=offset,
            metadata=metadata,
        )
        await self._retry.log(f"commit {self._topic}", lambda: self._log_port.write((), [commit]))

    def _is_news(self, record: Record) -> bool:
        """Whether it was written since forwarding began."""
        _, partition, offset = record.position
        if offset < self._begins.get(partition, 0):
            return False
        self._begins.pop(partition, None)
        return True

    def _expired(self, batch: Batch) -> int:
        """How many records the log dropped before they were read."""
        lost = sum(n for partition, n in batch.lost.items() if partition not in self._begins)
        if lost and self._expiries.due():
            _log.error(
                "The log dropped what the backend did not have yet: %d records of %s",
                lost,
                self._topic,
            )
        return lost
