"""The reader of a `FaultyLog`: it loses partitions and hides records on demand."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from collector.log.commits import Committed
from collector.log.embedded.polling import PollingReader, _PollBuffer
from collector.log.port import Assigned, Batch

if TYPE_CHECKING:
    from tests.support.faulty_log import FaultyLog

TURNS = 5
"""Of the event loop, that a poll waits for records."""


class FaultyReader(PollingReader):
    """Owns every partition, unless the test takes some away with `revoke` and gives them back with `assign`."""

    def __init__(self, log: FaultyLog, group: str, topic: str) -> None:
        super().__init__(log, group, topic)
        self.polls = 0
        self.lag = 0
        """Hide this many of the newest offsets of each partition."""
        self._log = log
        self._revoked: list[int] = []
        self._coming: list[int] = []
        self._is_assigned = False

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return not self._open

    def revoke(self, partition: int) -> None:
        """Take the partition away; the next poll says so."""
        self._revoked.append(partition)

    def assign(self, partition: int) -> None:
        """Give the partition back; the next poll says so."""
        self._coming.append(partition)

    async def poll(self, *, max_records: int = 256, timeout: float = 1.0) -> Batch:
        await asyncio.sleep(0)
        self._log.step()
        self._log.fail(self._log.poll_failures)
        self.polls += 1
        if self._revoked or self._coming:
            return self._rebalance()
        if self._is_assigned and self._open and not self._positions:
            return Batch()
        self._is_assigned = True
        lost = self._skip_expired()
        batch = await super().poll(max_records=max_records, timeout=timeout)
        if (
            self._log.at_end is not None
            and not batch.records
            and set(batch.ends) == set(self._positions)
        ):
            self._log.at_end.set()
        return replace(batch, lost={**batch.lost, **lost})

    def _assign(self) -> Batch:
        batch = super()._assign()
        for each in batch.assigned:
            if each.offset is None:  # no commit: it begins at the oldest record and has lost none
                oldest = self._log.oldest.get((self.topic, each.partition), 0)
                self._positions[each.partition] = oldest
        return batch

    def _rebalance(self) -> Batch:
        revoked, self._revoked = self._revoked, []
        coming, self._coming = self._coming, []
        for each in revoked:
            del self._positions[each]
        return Batch(
            revoked=tuple(revoked), assigned=tuple(self._assigned(each) for each in coming)
        )

    def _assigned(self, partition: int) -> Assigned:
        committed: Committed = self._log.committed(self.group, self.topic, partition)
        self._positions[partition] = committed.offset or 0
        return Assigned(partition=partition, offset=committed.offset, metadata=committed.metadata)

    def _skip_expired(self) -> dict[int, int]:
        """Move to the oldest records; returns how many were lost, by partition."""
        lost = {
            partition: oldest - position
            for partition, position in self._positions.items()
            if position < (oldest := self._log.oldest.get((self.topic, partition), 0))
        }
        for partition, count in lost.items():
            self._positions[partition] += count
        return lost

    async def _take(self, partition: int, buffer: _PollBuffer) -> None:
        if not self.lag:
            await super()._take(partition, buffer)
            return
        since = self._positions[partition]
        end = self._log.end_offset(self.topic, partition) - self.lag
        records, _ = self._log.slice(self.topic, partition, since, end=end, most=buffer.space)
        if records:
            buffer.add(partition, records)

    async def _wait(self, timeout: float) -> None:
        """Turns of the event loop, not seconds."""
        for _ in range(TURNS):
            if self._appended.is_set():
                break
            await asyncio.sleep(0)
