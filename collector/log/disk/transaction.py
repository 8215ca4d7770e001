"""One write transaction of the disk log. Changes become visible only after LMDB commits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

import lmdb

from collector.log.commits import CommitKey, Committed
from collector.log.disk.frames import (
    count_of,
    footprint,
    offset_of,
    piece_key,
    pieces,
    time_of,
)
from collector.log.disk.store import DiskStore, LogState
from collector.log.embedded.prepared_record import TopicPartition, admit
from collector.log.embedded.retention import AppliedRetention, Retention, Stored
from collector.log.port import COMPACTED, Commit, New, Position, Record


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
        self.written: list[Record] = []
        self._store = store
        self._txn = txn
        self._records = DiskRecords(store, txn)
        self._retention = AppliedRetention(retention, self._records, self.state.commits)
        self.drops = self._retention.drops
        self._time = time
        self._end_offsets: dict[TopicPartition, int] = {}
        self._commits: dict[CommitKey, Committed] = {}

    def admit(self, records: Sequence[New], commits: Sequence[Commit]) -> Sequence[Record]:
        """The first half of a call; nothing of it is written when it raises, but room was made.

        Raises LogFull, RecordTooLarge, ValueError: see `prepared_record.admit`.
        """
        return admit(
            records, commits, self.state.end_offsets, time=self._time, retention=self._retention
        )

    def append(self, prepared: Sequence[Record], commits: Sequence[Commit]) -> Sequence[Position]:
        """The second half; when it raises, the transaction must be given up."""
        self._records.append(prepared)
        self._advance(prepared, commits)
        self.written += prepared
        return [record.position for record in prepared]

    def release(self, positions: Iterable[Position]) -> None:
        """Delete records before their commit, or note that they may go; positions without a record are passed over."""
        for position in positions:
            if position[:2] in self._store.records:
                self._retention.release(position)

    def free(self, size: int) -> None:
        """Drop records that no one waits for, though no share is used up."""
        self._retention.free(size)

    def trim(self, budget: int) -> bool:
        """Delete records that no group needs; True when there are more."""
        return self._retention.trim(budget)

    def save(self) -> None:
        self._store.save(
            self._txn, time=self._time, end_offsets=self._end_offsets, commits=self._commits
        )

    def sizes(self, topics: Iterable[str]) -> dict[str, int]:
        return {topic: self._records.used(topic) for topic in topics}

    def _advance(self, prepared: Sequence[Record], commits: Sequence[Commit]) -> None:
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
        self._used: dict[str, int] = {}  # by topic, until something of it is written or deleted
        self._newest: dict[tuple[TopicPartition, bytes], _Newest] = {}
        """By partition and key of a compacted topic, what was looked up or written in this transaction."""

    def used(self, topic: str) -> int:
        """Bytes of the pages that hold the topic."""
        used = self._used.get(topic)
        if used is None:
            pages = sum(map(self._pages, self._store.databases(topic)))
            used = self._used[topic] = pages * self._store.page
        return used

    def oldest(self, topic: str, partition: int) -> Stored | None:
        cursor = self._cursor((topic, partition))
        return _stored(cursor, topic, partition) if cursor.first() else None

    def at(self, position: Position) -> Stored | None:
        cursor = self._cursor(position[:2])
        found = cursor.set_key(piece_key(position.offset))
        return _stored(cursor, *position[:2]) if found else None

    def delete(self, position: Position) -> None:
        self._used.pop(position.topic, None)
        cursor = self._cursor(position[:2])
        first = piece_key(position.offset)
        if cursor.key() != first:
            cursor.set_key(first)
        while cursor.key()[:8] == first[:8]:
            cursor.delete()

    def need(self, record: Record) -> int:
        if record.is_tombstone:
            return 0
        if record.position.topic in COMPACTED and self._look_up(record).offset is not None:
            return 0
        return footprint(record.size, page=self._store.page)

    def append(self, records: Sequence[Record]) -> None:
        """Append records; their offsets are above every offset that their partitions ever had.

        Of a compacted topic only the last one of each key is written: no one could see the others.
        """
        stored: dict[TopicPartition, list[Record]] = {}
        for prepared in _without_superseded(records):
            if prepared.position.topic in COMPACTED:
                self._supersede(prepared)
            if not prepared.is_tombstone:
                stored.setdefault(prepared.position[:2], []).append(prepared)
        page = self._store.page
        for topic_partition, of_one in stored.items():
            self._used.pop(topic_partition[0], None)
            # Of one record after the other: no copy of all is held.
            made = (piece for each in of_one for piece in pieces(each, page=page))
            self._cursor(topic_partition).putmulti(made, append=True)

    def _look_up(self, prepared: Record) -> _Newest:
        topic_partition = prepared.position[:2]
        found = self._newest.get((topic_partition, prepared.key))
        if found is None:
            digest = key_digest(prepared.key)
            stored = self._txn.get(digest, db=self._store.keys[topic_partition])
            offset = None if stored is None else int.from_bytes(stored, "big")
            found = self._newest[topic_partition, prepared.key] = _Newest(digest, offset)
        return found

    def _supersede(self, prepared: Record) -> None:
        topic_partition = prepared.position[:2]
        keys = self._store.keys[topic_partition]
        digest, old = self._look_up(prepared)
        if old is not None:
            self.delete(Position(*topic_partition, old))
        new = None if prepared.is_tombstone else prepared.position.offset
        if new is not None:
            self._txn.put(digest, new.to_bytes(8, "big"), db=keys)
        elif old is not None:
            self._txn.delete(digest, db=keys)
        self._newest[topic_partition, prepared.key] = _Newest(digest, new)

    def _cursor(self, topic_partition: TopicPartition) -> lmdb.Cursor[bytes]:
        if topic_partition not in self._cursors:
            self._cursors[topic_partition] = self._txn.cursor(self._store.records[topic_partition])
        return self._cursors[topic_partition]

    def _pages(self, db: lmdb._Database) -> int:
        stat = self._txn.stat(db)
        return stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]


def _stored(cursor: lmdb.Cursor[bytes], topic: str, partition: int) -> Stored:
    head = cursor.value()
    position = Position(topic, partition, offset_of(cursor.key()))
    return Stored(time_of(head), position, count_of(head))


class _Newest(NamedTuple):
    """Where the newest record of a key is; None: there is none."""

    digest: bytes
    offset: int | None


def _without_superseded(records: Sequence[Record]) -> Sequence[Record]:
    """Without those of compacted topics whose key comes again."""
    last: dict[tuple[TopicPartition, bytes], int] = {}
    superseded: set[int] = set()
    for number, each in enumerate(records):
        if each.position.topic in COMPACTED:
            named = each.position[:2], each.key
            if (earlier := last.get(named)) is not None:
                superseded.add(earlier)
            last[named] = number
    if not superseded:
        return records
    return [each for number, each in enumerate(records) if number not in superseded]


def key_digest(key: bytes) -> bytes:
    """LMDB takes keys of at most 511 bytes; session ids may be longer."""
    return blake2b(key, digest_size=16).digest()
