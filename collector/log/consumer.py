"""The loop with which every room reads the log: a group's consumer of one topic.

    wait_for_capacity -> poll -> revoke -> assign -> take -> commit -> ... -> finish

Reading waits out an outage of the log. Records that can never be processed are counted and named, and the loop goes on.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from collector.base.errors import Retryable, UnknownKind
from collector.base.families import RuntimeFamilies
from collector.base.retry import Retry
from collector.base.telemetry import Telemetry
from collector.log.port import Assigned, Batch, Commit, Log, Position, Reader

UNASSIGNED_SECONDS = 30.0  # how long `_read_to_end` polls without a partition: other members of the group have them all
REST = 1.0  # seconds that a poll of a room waits which time alone changes nothing for; a record ends the wait at once

_log = logging.getLogger(__name__)


class Consumer:
    """One member of a group, reading one topic. A room subclasses it and fills in the steps.

    The defaults of the steps suit a room that keeps no state per partition and is done with a record when `take`
    returns: it calls `self._offsets.done(record.position)`, and the loop commits after each batch. A room that is done
    later, or writes records together with its commits, overrides `commit`.

    Args:
        log: The log to read from and to commit to.
        group: The group that shares the topic's partitions and commits.
        retry: How the room waits for the log; its `name` is in log lines.
        telemetry: For `spanwise_poison_records_total`.
        max_records: The most records of one batch.
        timeout: Seconds that a poll waits for records while the passing of time may change something.
        linger: Seconds that a record may wait for others to be read with it.
    """

    def __init__(
        self,
        *,
        log: Log,
        group: str,
        topic: str,
        retry: Retry,
        telemetry: Telemetry,
        max_records: int = 256,
        timeout: float = 1.0,
        linger: float = 0.0,
    ) -> None:
        self._offsets = Offsets(group, topic)
        self._poison = PoisonReport(telemetry)
        self._at_end: set[int] = set()  # the owned partitions that were read to their end
        self._log_port = log
        self._group = group
        self._topic = topic
        self._retry = retry
        self._max_records = max_records
        self._timeout = timeout
        self._linger = linger
        self._assigned: set[int] = set()
        self._reader: Reader
        self._polling: asyncio.Timeout | None = None

    async def run(self, stopping: asyncio.Event) -> None:
        """Read until `stopping` is set, then `finish`; what could not be written is read again after the next start."""
        self._retry.stopping = stopping
        try:
            async with self._joined():
                await self._read_until(stopping)
                await self.finish()
        except* Retryable as errors:
            self._log_unwritten(errors)

    async def wait_for_capacity(self) -> None:
        """Wait until the room can take another batch."""

    async def revoke(self, partition: int) -> None:
        """Another member owns the partition now; the loop has forgotten its offsets."""

    async def assign(self, assigned: Assigned) -> None:
        """Read back the partition's state. Its records come with later batches."""

    async def take(self, batch: Batch) -> None:
        """Process the records of a batch, which may be empty, and what it says about ends and losses."""
        raise NotImplementedError

    async def commit(self) -> None:
        """Store the offsets that are done with; called after each batch."""
        commits = self._offsets.commits()
        if commits:
            await self._retry.log(
                f"commit {self._topic}", lambda: self._log_port.write((), commits)
            )
            self._offsets.committed(commits)

    @property
    def is_at_rest(self) -> bool:
        """Whether time alone changes nothing: a poll may then wait for REST seconds, not just for the timeout."""
        return False

    async def finish(self) -> None:
        """Write what is left; called once after the last batch, while the partitions are still owned."""
        await self.commit()

    def join(self) -> None:
        self._offsets.clear()
        self._at_end.clear()
        self._assigned.clear()
        self._reader = self._log_port.read(self._group, self._topic, linger=self._linger)

    async def step(self) -> None:
        await self.wait_for_capacity()
        batch = await self._poll()
        for partition in batch.revoked:
            self._assigned.discard(partition)
            self._offsets.forget(partition)
            await self.revoke(partition)
        for assigned in batch.assigned:
            self._assigned.add(assigned.partition)
            await self.assign(assigned)
        self._note_ends(batch)
        await self.take(batch)
        await self.commit()

    @asynccontextmanager
    async def _joined(self) -> AsyncGenerator[None]:
        self.join()
        try:
            yield
        finally:
            await self._reader.close()

    async def _read_until(self, stopping: asyncio.Event) -> None:
        cutting = asyncio.create_task(self._cut_short(stopping))
        try:
            while not stopping.is_set():
                await self.step()
        finally:
            cutting.cancel()

    async def _poll(self) -> Batch:
        """What comes next; nothing when `_cut_short` ends the wait: a poll that is cancelled loses nothing."""
        wait = self._patience
        try:
            async with asyncio.timeout(None) as self._polling:
                return await self._retry.log(
                    f"read {self._topic}",
                    lambda: self._reader.poll(max_records=self._max_records, timeout=wait),
                )
        except TimeoutError:
            if self._polling is None or not self._polling.expired():
                raise
            return Batch()
        finally:
            self._polling = None

    @property
    def _patience(self) -> float:
        return max(self._timeout, REST) if self.is_at_rest else self._timeout

    async def _cut_short(self, stopping: asyncio.Event) -> None:
        await stopping.wait()
        if self._polling is not None:
            self._polling.reschedule(asyncio.get_running_loop().time())

    async def _read_to_end(self) -> None:
        """Read until every owned partition is at its end, or none is assigned for UNASSIGNED_SECONDS of polls."""
        unassigned = 0.0
        while unassigned < UNASSIGNED_SECONDS and not self._has_read_all:
            waits = self._patience
            await self.step()
            unassigned = 0.0 if self._assigned else unassigned + waits

    @property
    def _has_read_all(self) -> bool:
        return bool(self._assigned) and self._at_end == self._assigned

    def _note_ends(self, batch: Batch) -> None:
        self._at_end -= {record.position.partition for record in batch.records}
        self._at_end |= batch.ends.keys()
        self._at_end &= self._assigned - {each.partition for each in batch.assigned}

    def _log_unwritten(self, errors: ExceptionGroup[Retryable]) -> None:
        _log.warning(
            "%s stops; what is unwritten waits in the log: %r", self._retry.name, errors.exceptions
        )


class Offsets:
    """The offsets that a group is done with and has not committed yet. Records are done in the order of offsets."""

    def __init__(self, group: str, topic: str) -> None:
        self._group = group
        self._topic = topic
        self._next: dict[int, int] = {}

    def done(self, position: Position) -> None:
        self._next[position.partition] = position.offset + 1

    def forget(self, partition: int) -> None:
        self._next.pop(partition, None)

    def clear(self) -> None:
        self._next.clear()

    def commits(self) -> list[Commit]:
        """One for each partition with progress, in the order of partitions."""
        return [
            Commit(group=self._group, topic=self._topic, partition=partition, offset=offset)
            for partition, offset in sorted(self._next.items())
        ]

    def committed(self, commits: Sequence[Commit]) -> None:
        for commit in commits:
            if self._next.get(commit.partition) == commit.offset:
                del self._next[commit.partition]


class PoisonReport:
    """Counts and names the records that can never be processed or written. The caller goes on with the next one."""

    def __init__(self, telemetry: Telemetry) -> None:
        families = RuntimeFamilies(telemetry)
        self._records = families.poison_records
        self._unknown = families.unknown_records
        self._has_named_unknown = False

    def unprocessable(self, position: Position, reason: object) -> None:
        """A record that was read cannot be decoded, or breaks a rule of its topic.

        A record of a kind that a newer version wrote is counted apart; the first one is named in the log.
        """
        if isinstance(reason, UnknownKind):
            self._pass_over_unknown(position, reason)
            return
        self._records.labels(position.topic).inc()
        _log.error(
            "A record of `%s`, partition %d, offset %d, can never be processed and is passed over: %s",
            *position,
            reason,
        )

    def _pass_over_unknown(self, position: Position, reason: UnknownKind) -> None:
        self._unknown.labels(position.topic).inc()
        if not self._has_named_unknown:
            self._has_named_unknown = True
            _log.warning(
                "Records that only a newer version knows are passed over, the first: `%s`, partition %d, offset %d: %s",
                *position,
                reason,
            )

    def too_large(self, topic: str, key: bytes, reason: object) -> None:
        self._records.labels(topic).inc()
        _log.error(
            "A record for `%s` with key %r is too large for the log and is dropped: %s",
            topic,
            key,
            reason,
        )
