"""The disk log's folder: the lock of its process, and the LMDB file with records, offsets, time and commits.

meta              "time", "partitions", "next <topic> <partition>"
commits           msgpack [group, topic, partition] -> [offset, metadata]
<topic>/<n>       pieces of records
<topic>/<n>/keys  compacted topics: digest of the key -> offset of its newest record

Readers take snapshots on the event loop; one thread writes.

A record is a head, then headers, key and value, cut into pieces of one LMDB page each. LMDB stores a value above half
a page on adjacent pages of its own. On a fragmented map the search for adjacent pages is slow, and fails long before
the map is full. A piece of exactly one page fits any free page, so every page that was trimmed can be used again,
whatever the sizes. It costs little more than whole values (docs/decisions/010).

    key    offset (8 bytes, big-endian), number of the piece (2 bytes)
    value  time (float64), lengths of value, key, headers (3 x uint32), headers (msgpack), key, value
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import lmdb
import msgspec
from lmdb import _Database as Database

from collector.errors import ConfigError, DataFolderInUse
from collector.log.commits import CommitKey, Commits, Committed
from collector.log.embedded.prepared_record import TopicPartition
from collector.log.port import COMPACTED, TOPICS, WINDOWS, Headers, Position, Record
from collector.runtime.fsync import sync_folder

_LOCK_NAME = "spanwise.lock"
_SLACK = 64 << 20
_STEP = 4 << 20
_LAST_TIME = b"time"
_PARTITIONS = b"partitions"
_DOUBLE = struct.Struct("<d")
_HEAD = struct.Struct("<dIII")
_KEY = struct.Struct(">QH")
_PAGE_HEADER = 16
_INLINE = 2022
"""A piece up to this size shares its page with others (LMDB's node limit at 4 KiB pages, with our keys)."""
_NODE = 20
"""What LMDB adds to a shared piece: node header, slot and key."""

_encode = msgspec.msgpack.Encoder().encode
_commit_key = msgspec.msgpack.Decoder(CommitKey).decode
_committed = msgspec.msgpack.Decoder(Committed).decode
_decode_headers = msgspec.msgpack.Decoder(Headers).decode

Piece = tuple[bytes, "bytes | memoryview"]


@dataclass(frozen=True, slots=True)
class LogState:
    """The end offset of every partition, and the commits."""

    end_offsets: dict[TopicPartition, int]
    commits: Commits

    def copy(self) -> LogState:
        """A copy that can be changed and thrown away."""
        return LogState(dict(self.end_offsets), self.commits.copy())


class LockFile:
    """One process per data folder: an advisory lock, held from construction to `close` or until its holder dies.

    Raises:
        DataFolderInUse: another process (or another log in this one) holds the folder.
    """

    def __init__(self, folder: Path) -> None:
        self._descriptor = os.open(
            folder / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644
        )
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise DataFolderInUse(
                f"{folder} is in use by process {holder or 'unknown'}; "
                "stop it, or give this one another data_dir"
            ) from error
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def close(self) -> None:
        """Release the lock. The file stays: removing it would let two processes hold two files of one name."""
        os.close(self._descriptor)


class DiskStore:
    """The LMDB file, open for one process. Its map is larger than `max_size`: freed pages wait to be used again.

    Raises:
        ConfigError: the folder holds another number of partitions.
    """

    def __init__(self, folder: Path, *, max_size: int, partitions: int) -> None:
        self.folder = folder
        self._map_size = max_size + min(max_size, _SLACK)
        self._partitions = partitions
        self._lock = threading.Lock()
        self._open()
        sync_folder(folder)

    @property
    def topic_partitions(self) -> tuple[TopicPartition, ...]:
        """Every topic with each of its partitions."""
        return tuple(self.records)

    def reopen(self) -> None:
        """Open the file again after an error that LMDB does not recover from (a meta page that was not written)."""
        with self._lock:
            self._env.close()
            self._open()

    def grow(self) -> None:
        """Give a full map a few more pages, once: deleting needs pages too."""
        with self._lock:
            self._env.set_mapsize(self._map_size + _STEP)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._env.close()

    @contextmanager
    def reading(self) -> Generator[lmdb.Transaction[memoryview]]:
        """A snapshot, for one synchronous piece of work: left open it would keep pages from being used again."""
        with self._lock, self._env.begin(buffers=True) as txn:
            yield txn

    def writing(self) -> lmdb.Transaction[bytes]:
        """The transaction of the only writer."""
        return self._env.begin(write=True)

    def load_time(self) -> float:
        """The time of the newest record ever written."""
        with self.reading() as txn:
            stored = txn.get(_LAST_TIME, db=self.meta)
            return 0.0 if stored is None else _DOUBLE.unpack(stored)[0]

    def load_state(self, groups: Mapping[str, frozenset[str]]) -> LogState:
        """The state that the last transaction left."""
        with self.reading() as txn:
            end_offsets = {
                topic_partition: int.from_bytes(stored, "big")
                for topic_partition in self.topic_partitions
                if (stored := txn.get(_next_key(topic_partition), db=self.meta)) is not None
            }
            table = {_commit_key(k): _committed(v) for k, v in txn.cursor(self.commits)}
        return LogState(end_offsets, Commits(groups, table))

    def save(
        self,
        txn: lmdb.Transaction[bytes],
        *,
        time: float,
        end_offsets: Mapping[TopicPartition, int],
        commits: Mapping[CommitKey, Committed],
    ) -> None:
        """Write the changes into the transaction."""
        for topic_partition, offset in end_offsets.items():
            txn.put(_next_key(topic_partition), offset.to_bytes(8, "big"), db=self.meta)
        if end_offsets:
            txn.put(_LAST_TIME, _DOUBLE.pack(time), db=self.meta)
        for key, committed in commits.items():
            txn.put(_encode(key), _encode(committed), db=self.commits)

    def _open(self) -> None:
        databases = 2 + (len(TOPICS) + len(COMPACTED)) * self._partitions
        self._env = lmdb.open(
            str(self.folder),
            map_size=self._map_size,
            max_dbs=databases,
            max_spare_txns=1,
            mode=0o600,
        )
        self._env.reader_check()
        self.page = self._env.stat()["psize"]
        self.meta = self._env.open_db(b"meta")
        self.commits = self._env.open_db(b"commits")
        self._check_partitions()
        self.records: dict[TopicPartition, Database] = {}
        self.keys: dict[TopicPartition, Database] = {}
        for topic in TOPICS:
            for partition in range(1 if topic == WINDOWS else self._partitions):
                name = f"{topic}/{partition}"
                self.records[topic, partition] = self._env.open_db(name.encode())
                if topic in COMPACTED:
                    self.keys[topic, partition] = self._env.open_db(f"{name}/keys".encode())

    def _check_partitions(self) -> None:
        configured = str(self._partitions).encode()
        with self._env.begin(write=True, db=self.meta) as txn:
            stored = txn.get(_PARTITIONS)
            if stored is None:
                txn.put(_PARTITIONS, configured)
        if stored not in (None, configured):
            self._env.close()
            raise ConfigError(
                f"{self.folder} holds a log of {stored.decode()} partitions, not {configured.decode()}; "
                "use that number, or another data_dir"
            )


def _next_key(topic_partition: TopicPartition) -> bytes:
    return f"next {topic_partition[0]} {topic_partition[1]}".encode()


def piece_key(offset: int, piece: int = 0) -> bytes:
    """The key of one piece of the record at `offset`."""
    return _KEY.pack(offset, piece)


def offset_of(key: bytes | memoryview) -> int:
    """The offset that a piece belongs to."""
    return int.from_bytes(key[:8], "big")


def time_of(first: bytes | memoryview) -> float:
    """The time of the record whose first piece this is."""
    return _DOUBLE.unpack_from(first)[0]


def pieces(
    offset: int, *, time: float, key: bytes, value: bytes, headers: Headers, page: int
) -> Iterator[Piece]:
    """The keys and values to be stored, in order. `page`: LMDB's page size."""
    packed = _encode(headers) if headers else b""
    head = b"".join((_HEAD.pack(time, len(value), len(key), len(packed)), packed, key))
    size = page - _PAGE_HEADER
    space = max(size - len(head), 0)
    first = b"".join((head, memoryview(value)[:space]))
    if len(first) > size:  # headers and key alone need more than a page
        first, value, space = first[:size], first[size:] + value, 0
    yield _KEY.pack(offset, 0), first
    rest = memoryview(value)
    for number, start in enumerate(range(space, len(value), size), 1):
        yield _KEY.pack(offset, number), rest[start : start + size]


def footprint(size: int, *, page: int) -> int:
    """Bytes that a record of `size` bytes takes on disk, rounded up."""
    whole, rest = divmod(size + _HEAD.size, page - _PAGE_HEADER)
    return whole * page + (page if rest > _INLINE else rest + _NODE)


def read_record(cursor: lmdb.Cursor[memoryview], topic: str, partition: int) -> tuple[Record, bool]:
    """The record whose first piece the cursor stands at; it moves on. False: nothing follows."""
    offset = offset_of(cursor.key())
    parts = [cursor.value()]
    time, of_value, of_key, of_headers = _HEAD.unpack_from(parts[0])
    missing = _HEAD.size + of_value + of_key + of_headers - len(parts[0])
    while missing > 0 and cursor.next():
        parts.append(cursor.value())
        missing -= len(parts[-1])
    start = _HEAD.size + of_headers + of_key
    if start > len(parts[0]):
        parts = [memoryview(b"".join(parts))]
    first = parts[0]
    record = Record(
        position=Position(topic, partition, offset),
        key=bytes(first[start - of_key : start]),
        value=b"".join((first[start:], *parts[1:])),
        time=time,
        headers=_decode_headers(first[_HEAD.size : start - of_key]) if of_headers else (),
    )
    return record, cursor.next()
