"""One write transaction of the disk log. Changes become visible only after LMDB commits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

import lmdb

from collector.log.commits import CommitKey, Committed
from collector.log.disk.frames import (
    Piece,
    footprint,
    offset_of,
    piece_key,
    pieces,
    time_of,
)
from collector.log.disk.store import DiskStore, LogState
from collector.log.embedded.prepared_record import (
    PreparedRecord,
    TopicPartition,
    check_commits,
    prepare,
)
from collector.log.embedded.retention import Drops, Retention
from collector.log.port import COMPACTED, Commit, New, Position


class Admitted(NamedTuple):
    """Records that may be appended, and the bytes by which each topic grows with them."""

    prepared: Sequence[PreparedRecord]
    need: dict[str, int]


class DiskTxn:
    """`state` and `drops` hold once the transaction has committed."""

    def __init__(
        self,
        store: DiskStore,
        txn: lmdb.Transaction[bytes],
        state: LogState,
        *,
        retention: Retention,
        time: float,
    ) -> None:
        self.state = state.copy()
        self.drops = Drops()
        self.written: list[PreparedRecord] = []
        self._store = store
        self._txn = txn
        self._records = DiskRecords(store, txn)
        self._retention = retention
        self._time = time
        self._end_offsets: dict[TopicPartition, int] = {}
        self._commits: dict[CommitKey, Committed] = {}

    def admit(self, records: Sequence[New], commits: Sequence[Commit]) -> Admitted:
        """The first half of a call; nothing is changed when it raises.

        Raises:
            LogFull, RecordTooLarge, ValueError: see `prepared_record.prepare` and `Retention.admit`.
        """
        partitions = self._retention.partitions
        check_commits(commits, partitions)
        prepared = prepare(
            records, self.state.end_offsets, partitions=partitions, quotas=self._retention.quotas
        )
        need = self._need(prepared)
        topics = {commit.topic for commit in commits}
        self._retention.admit(self._records, self.state.commits, need, committing=topics)
        return Admitted(prepared, need)

    def append(self, admitted: Admitted, commits: Sequence[Commit]) -> Sequence[Position]:
        """The second half; when it raises, the transaction must be given up."""
        prepared, need = admitted
        self._retention.make_space(self._records, self.state.commits, need, self.drops)
        self._records.append(prepared, self._time)
        self._advance(prepared, commits)
        self.written += prepared
        return [record.position for record in prepared]

    def release(self, positions: Iterable[Position]) -> None:
        """Delete records before their commit; positions without a record are passed over."""
        for position in positions:
            if position.topic not in COMPACTED and position[:2] in self._store.records:
                self._records.delete(position)

    def trim(self, budget: int) -> bool:
        """Delete records that no group needs; True when there are more."""
        return self._retention.trim(self._records, self.state.commits, self.drops, budget)

    def save(self) -> None:
        """Put offsets, time and commits beside the records."""
        self._store.save(
            self._txn, time=self._time, end_offsets=self._end_offsets, commits=self._commits
        )

    def sizes(self, topics: Iterable[str]) -> dict[str, int]:
        """Bytes held, by topic."""
        return {topic: self._records.used(topic) for topic in topics}

    def _need(self, prepared: Sequence[PreparedRecord]) -> dict[str, int]:
        need: dict[str, int] = {}
        for record in prepared:
            topic = record.position.topic
            need[topic] = need.get(topic, 0) + self._records.need(record)
        return need

    def _advance(self, prepared: Sequence[PreparedRecord], commits: Sequence[Commit]) -> None:
        for record in prepared:
            topic, partition, offset = record.position
            self._end_offsets[topic, partition] = offset + 1
        self.state.end_offsets.update(self._end_offsets)
        for commit in commits:
            advanced = self.state.commits.advance(commit)
            if advanced is not None:
                self._commits[advanced[0]] = advanced[1]


class DiskRecords:
    """The records as one write transaction sees them (`retention.RecordStore`). Ends with its transaction."""

    def __init__(self, store: DiskStore, txn: lmdb.Transaction[bytes]) -> None:
        self._store = store
        self._txn = txn
        self._cursors: dict[TopicPartition, lmdb.Cursor[bytes]] = {}
        self._by_topic: dict[str, list[TopicPartition]] = {}
        for topic_partition in store.topic_partitions:
            self._by_topic.setdefault(topic_partition[0], []).append(topic_partition)

    def used(self, topic: str) -> int:
        """Bytes of the pages that hold the topic."""
        databases = [
            self._store.records[topic_partition] for topic_partition in self._by_topic[topic]
        ]
        if topic in COMPACTED:
            databases += [
                self._store.keys[topic_partition] for topic_partition in self._by_topic[topic]
            ]
        return sum(self._pages(db) for db in databases) * self._store.page

    def oldest(self, topic: str, partition: int) -> tuple[int, float] | None:
        """Offset and time of the partition's oldest record."""
        cursor = self._cursor((topic, partition))
        if not cursor.first():
            return None
        return offset_of(cursor.key()), time_of(cursor.value())

    def delete(self, position: Position) -> None:
        """Remove every piece of a record."""
        cursor = self._cursor(position[:2])
        first = piece_key(position.offset)
        if cursor.key() != first:
            cursor.set_key(first)
        while cursor.key()[:8] == first[:8]:
            cursor.delete()

    def need(self, prepared: PreparedRecord) -> int:
        """Bytes by which the topic grows; 0 for a tombstone or a key that the topic holds already."""
        if prepared.value is None:
            return 0
        topic_partition = prepared.position[:2]
        if prepared.position.topic in COMPACTED:
            stored = self._txn.get(_digest(prepared.key), db=self._store.keys[topic_partition])
            if stored is not None:
                return 0
        return footprint(prepared.size, page=self._store.page)

    def append(self, records: Sequence[PreparedRecord], time: float) -> None:
        """Append records; their offsets are above every offset that their partitions ever had."""
        waiting: dict[TopicPartition, list[Piece]] = {}
        for prepared in records:
            topic_partition = prepared.position[:2]
            if prepared.position.topic in COMPACTED:
                self._supersede(prepared)
                self._cursor(topic_partition).putmulti(self._pieces(prepared, time), append=True)
            else:
                waiting.setdefault(topic_partition, []).extend(self._pieces(prepared, time))
        for topic_partition, items in waiting.items():
            self._cursor(topic_partition).putmulti(items, append=True)

    def _pieces(self, prepared: PreparedRecord, time: float) -> Iterable[Piece]:
        if prepared.value is None:
            return ()
        return pieces(
            prepared.position.offset,
            time=time,
            key=prepared.key,
            value=prepared.value,
            headers=prepared.headers,
            page=self._store.page,
        )

    def _supersede(self, prepared: PreparedRecord) -> None:
        topic_partition, digest = prepared.position[:2], _digest(prepared.key)
        keys = self._store.keys[topic_partition]
        old = self._txn.get(digest, db=keys)
        if old is not None:
            self.delete(Position(*topic_partition, int.from_bytes(old, "big")))
        if prepared.value is not None:
            self._txn.put(digest, prepared.position.offset.to_bytes(8, "big"), db=keys)
        elif old is not None:
            self._txn.delete(digest, db=keys)

    def _cursor(self, topic_partition: TopicPartition) -> lmdb.Cursor[bytes]:
        if topic_partition not in self._cursors:
            self._cursors[topic_partition] = self._txn.cursor(self._store.records[topic_partition])
        return self._cursors[topic_partition]

    def _pages(self, db: lmdb._Database) -> int:
        stat = self._txn.stat(db)
        return stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]


def _digest(key: bytes) -> bytes:
    """LMDB takes keys of at most 511 bytes; session ids may be longer."""
    return blake2b(key, digest_size=16).digest()
