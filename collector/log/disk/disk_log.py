"""The embedded log: one LMDB file, one process, durable before `write` returns."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import lmdb

from collector.base.clock import Clock
from collector.base.errors import ConfigError, DataDamaged, LogUnavailable, Undecodable
from collector.base.telemetry import Telemetry
from collector.base.thread_callers import ThreadCallers
from collector.log.commits import Committed
from collector.log.disk.damage import DamagedRecords, without_lock, without_map
from collector.log.disk.frames import (
    count_of,
    offset_of,
    piece_key,
    read_record,
    read_values,
    time_of,
)
from collector.log.disk.lmdb_check import check
from collector.log.disk.store import REMEDY, DiskStore, LockFile, map_size_of
from collector.log.disk.tail import Tail
from collector.log.disk.writer import Answer, Appended, DiskWriter, WriteCall
from collector.log.embedded.polling import (
    FOREVER,
    LINGER,
    SLICE_BYTES,
    EmbeddedLog,
    SharedLogTime,
    Slice,
    Unfinished,
)
from collector.log.embedded.prepared_record import TopicPartition
from collector.log.embedded.released_spans import ReleasedSpans
from collector.log.embedded.retention import Quotas, Retention
from collector.log.families import LogFamilies
from collector.log.port import SPANS, Commit, Lag, New, Position, Range, Record

_log = logging.getLogger(__name__)


class DiskLog(EmbeddedLog):
    reads_parts = True

    def __init__(
        self,
        lock: LockFile,
        store: DiskStore,
        *,
        quotas: Quotas,
        clock: Clock,
        telemetry: Telemetry,
        groups: Mapping[str, frozenset[str]],
        waits_for: Mapping[str, frozenset[str]],
        partitions: int,
    ) -> None:
        time = SharedLogTime(clock, store.load_time())
        super().__init__(time, partitions=partitions, linger=LINGER)
        families = LogFamilies(telemetry)
        self._lock = lock
        self._store = store
        self._damaged = DamagedRecords(telemetry)
        self._tail = Tail()
        self._looking: asyncio.Future[Lag] | None = None
        """The thread that looks for the oldest record that waits."""
        self._open = True
        self._callers = ThreadCallers("the thread that writes the log", LogUnavailable)
        self._writer = DiskWriter(
            store,
            load=lambda: store.load_state(groups),
            retention=Retention(quotas, self.partitions, waits_for, keeps=ReleasedSpans()),
            log_time=time,
            families=families,
            deliver=self._deliver,
            ended=self._callers.ended,
        )
        for topic, limit in quotas.limits().items():
            families.limit_bytes.labels(topic).set(limit)

    @classmethod
    async def open(
        cls,
        folder: Path,
        *,
        max_size: int,
        clock: Clock,
        telemetry: Telemetry,
        groups: Mapping[str, frozenset[str]],
        waits_for: Mapping[str, frozenset[str]] | None = None,
        partitions: int = 1,
    ) -> DiskLog:
        """Open or make the log in `folder`.

        Args:
            folder: Its own; made when it is not there.
            max_size: Bytes, divided between the topics.
            clock: The machine's; log time is made of it.
            telemetry: Where sizes and drops are counted.
            groups: By topic, the groups whose commits hold its records. Records of a topic that is not named here stay
                until its share is used up; those of a topic without groups are deleted at once.
            waits_for: By topic, the groups whose unread records are never dropped: a write that would need their space
                raises LogFull, unless it commits on that topic itself.
            partitions: Of every topic but `windows`, which has one.

        Raises:
            DataFolderInUse: another process holds the folder.
            DataDamaged: its file is cut off or overwritten, so that LMDB could not walk it.
            ConfigError: the folder cannot be used, or holds a log of another number of partitions.
        """
        lock, store = await asyncio.to_thread(
            _open, folder, max_size=max_size, partitions=partitions
        )
        return cls(
            lock,
            store,
            quotas=Quotas(max_size),
            clock=clock,
            telemetry=telemetry,
            groups=groups,
            waits_for=waits_for or {},
            partitions=partitions,
        )

    async def write(
        self, records: Sequence[New], commits: Sequence[Commit] = ()
    ) -> Sequence[Position]:
        """See `port.Log.write`; one transaction. Functions of positions run in the writer's thread.

        A call that is cancelled may still have been written.
        """
        if not self._open:
            raise LogUnavailable("the log is closed")
        return await self._callers.answered(
            lambda done: self._writer.submit(WriteCall(records, commits, done))
        )

    async def watch(self) -> None:
        await self._callers.watch()

    @property
    def end_offsets(self) -> Mapping[TopicPartition, int]:
        return self._writer.state.end_offsets

    async def values_of(self, topic: str, ranges: Sequence[Range]) -> list[bytes | None]:
        def pass_over(partition: int, offset: int, error: Undecodable) -> None:
            self._damaged.pass_over(Position(topic, partition, offset), error)

        with self._reading() as txn:
            of = self._store.records
            return read_values(txn, lambda at: of[topic, at], ranges, pass_over)

    def clear_readers(self) -> None:
        """A process that reads the file by itself (`map_reader.py`) has ended: its pages may be used again."""
        if self._open:
            self._store.clear_readers()

    def release(self, positions: Iterable[Position]) -> None:
        released = tuple(positions)
        self._tail.forget(each for each in released if each.topic != SPANS)
        self._writer.release(released)

    async def lag(self, group: str, topic: str, *, unread: bool = False) -> Lag:
        """One look into each partition, in a thread: a disk that hangs holds up no room."""
        waiting = self._unfinished(group, topic, unread=unread)
        if not waiting:
            return Lag()
        if not self._open or (self._looking is not None and not self._looking.done()):
            raise LogUnavailable("the disk has not answered yet")
        looking = asyncio.to_thread(self._lag, topic, waiting)
        self._looking = asyncio.ensure_future(looking)
        return await asyncio.shield(self._looking)

    async def close(self) -> None:
        """Write the calls that wait, end the readers, release the folder."""
        if not self._open:
            return
        self._open = False
        await asyncio.to_thread(self._writer.close)
        await self._close_readers()
        self._store.close()
        self._lock.close()

    def committed(self, group: str, topic: str, partition: int) -> Committed:
        return self._writer.state.commits.of(group, topic, partition)

    def slice(
        self, topic: str, partition: int, since: int, *, end: int = FOREVER, most: int = 256
    ) -> Slice:
        """From memory where it can be, else in one short read transaction."""
        topic_partition = (topic, partition)
        end_offset = self.end_offsets.get(topic_partition, 0)
        cached = self._tail.slice(topic_partition, since, end=end, most=most, end_offset=end_offset)
        return cached or self._read(topic, partition, since, end=end, most=most)

    def passed(self, topic: str, partition: int) -> None:
        readers = [reader for reader in self._readers if reader.topic == topic]
        if readers:
            offset = min(reader.position(partition) for reader in readers)
            self._tail.passed((topic, partition), offset)

    def _read(self, topic: str, partition: int, since: int, *, end: int, most: int) -> Slice:
        records: list[Record] = []
        size = 0
        with self._cursor(topic, partition) as cursor:
            alive = cursor.set_range(piece_key(since))
            while alive and (offset := offset_of(cursor.key())) < end:
                if len(records) >= most or size >= SLICE_BYTES:
                    return Slice(records, end=False)
                try:
                    record, alive = read_record(cursor, topic, partition)
                except Undecodable as error:
                    self._damaged.pass_over(Position(topic, partition, offset), error)
                    alive = cursor.set_range(piece_key(offset + 1))
                    continue
                records.append(record)
                size += len(record.value)
        return Slice(records, end=True)

    def _first(self, topic: str, waiting: Unfinished) -> tuple[int, float] | None:
        with self._cursor(topic, waiting.partition) as cursor:
            if not cursor.set_range(piece_key(waiting.low)):
                return None
            offset, head = offset_of(cursor.key()), cursor.value()
            if offset >= waiting.end:
                return None
            return max(waiting.low, offset - count_of(head) + 1), time_of(head)

    @contextmanager
    def _cursor(self, topic: str, partition: int) -> Generator[lmdb.Cursor[memoryview]]:
        with self._reading() as txn:
            yield txn.cursor(self._store.records[topic, partition])

    @contextmanager
    def _reading(self) -> Generator[lmdb.Transaction[memoryview]]:
        try:
            with self._store.reading() as txn:
                yield txn
        except lmdb.Error as error:
            raise LogUnavailable(f"the log cannot be read: {error}") from error

    def _deliver(
        self, calls: Sequence[WriteCall], answers: Sequence[Answer], appended: Sequence[Appended]
    ) -> None:
        self._callers.in_loop(partial(self._answer, calls, answers, appended))

    def _answer(
        self, calls: Sequence[WriteCall], answers: Sequence[Answer], appended: Sequence[Appended]
    ) -> None:
        for call, answer in zip(calls, answers, strict=True):
            if call.done.done():
                continue
            if isinstance(answer, Exception):
                call.done.set_exception(answer)
            else:
                call.done.set_result(answer)
        for each in appended:
            self._take_appended(each)

    def _take_appended(self, appended: Appended) -> None:
        read = {reader.topic for reader in self._readers}
        self._tail.forget(appended.dropped)
        self._tail.add(each for each in appended.written if each.position.topic in read)
        self._wake_readers({each.position.topic for each in appended.written})


def _open(folder: Path, *, max_size: int, partitions: int) -> tuple[LockFile, DiskStore]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = LockFile(folder)
    except OSError as error:
        raise ConfigError(without_lock(folder, error)) from error
    try:
        _check(folder)
        return lock, DiskStore(folder, max_size=max_size, partitions=partitions)
    except DataDamaged as error:
        lock.close()
        raise DataDamaged(f"{error}; {REMEDY}") from error
    except (lmdb.Error, OSError) as error:
        lock.close()
        raise ConfigError(without_map(folder, error, map_size_of(max_size))) from error
    except ConfigError:
        lock.close()
        raise


def _check(folder: Path) -> None:
    checked = check(folder)
    if checked.overwritten:
        _log.warning("%d pages of records in %s were overwritten.", checked.overwritten, folder)
    if not checked.is_whole:
        _log.warning("%s was checked up to %d pages only: its disk is slow.", folder, checked.pages)
