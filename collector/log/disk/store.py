"""The disk log's folder: the lock of its process, and the LMDB file with records, offsets, time and commits.

meta              "time", "partitions", "next <topic> <partition>"
commits           msgpack [group, topic, partition] -> [offset, metadata]
<topic>/<n>       pieces of records
<topic>/<n>/keys  compacted topics: digest of the key -> offset of its newest record

Readers take snapshots on the event loop; one thread writes.

How a record is cut into pieces: frames.py.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import lmdb
import msgspec
from lmdb import _Database as Database

from collector.base.errors import ConfigError, DataDamaged, DataFolderInUse
from collector.base.files import sync_folder
from collector.log.commits import CommitKey, Commits, Committed
from collector.log.embedded.prepared_record import TopicPartition
from collector.log.port import COMPACTED, TOPICS, WINDOWS

_LOCK_NAME = "spanwise.lock"
_SLACK = 64 << 20
_STEP = 4 << 20
_LAST_TIME = b"time"
_PARTITIONS = b"partitions"
_DOUBLE = struct.Struct("<d")

REMEDY = "restore the folder from a copy, or move it away to begin with an empty log"
"""What the user can do about a damaged log."""

_encode = msgspec.msgpack.Encoder().encode
_commit_key = msgspec.msgpack.Decoder(CommitKey).decode
_committed = msgspec.msgpack.Decoder(Committed).decode


@dataclass(frozen=True, slots=True)
class LogState:
    """The end offset of every partition, and the commits."""

    end_offsets: dict[TopicPartition, int]
    commits: Commits

    def copy(self) -> LogState:
        return LogState(dict(self.end_offsets), self.commits.copy())


class LockFile:
    """One process per data folder: an advisory lock, held from construction to `close` or until its holder dies.

    Raises DataFolderInUse: another process (or another log in this one) holds the folder.
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


def map_size_of(max_size: int) -> int:
    """Bytes of the map of a log of at most so many: freed pages wait to be used again."""
    return max_size + min(max_size, _SLACK)


class DiskStore:
    """The LMDB file, open for one process. Its map is larger than `max_size`: freed pages wait to be used again.

    Raises ConfigError: the folder holds another number of partitions.
    """

    def __init__(self, folder: Path, *, max_size: int, partitions: int) -> None:
        self.folder = folder
        self._map_size = map_size_of(max_size)
        self._partitions = partitions
        self._lock = threading.Lock()
        self._open()
        sync_folder(folder)

    @property
    def topic_partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(self.records)

    def databases(self, topic: str) -> Sequence[Database]:
        return self._of_topic[topic]

    def reopen(self) -> None:
        """Open the file again after an error that LMDB does not recover from (a meta page that was not written)."""
        with self._lock:
            self._env.close()
            self._open()

    def grow(self) -> None:
        """Give a full map a few more pages, once: deleting needs pages too."""
        with self._lock:
            self._env.set_mapsize(self._map_size + _STEP)

    def clear_readers(self) -> None:
        """Free the snapshots of processes that have ended: LMDB keeps their pages until someone does."""
        with self._lock, suppress(lmdb.Error):  # the writer will see what is wrong with the file
            self._env.reader_check()

    def close(self) -> None:
        with self._lock:
            self._env.close()

    @contextmanager
    def reading(self) -> Generator[lmdb.Transaction[memoryview]]:
        """A snapshot, for one synchronous piece of work: left open it would keep pages from being used again."""
        with self._lock, self._env.begin(buffers=True) as txn:
            yield txn

    def writing(self) -> lmdb.Transaction[bytes]:
        return self._env.begin(write=True)

    def load_time(self) -> float:
        """The time of the newest record ever written. Raises DataDamaged: it cannot be read."""
        with self.reading() as txn, _as_damage(self.folder):
            stored = txn.get(_LAST_TIME, db=self.meta)
            return 0.0 if stored is None else _DOUBLE.unpack(stored)[0]

    def load_state(self, groups: Mapping[str, frozenset[str]]) -> LogState:
        """The state that the last transaction left. Raises DataDamaged: it cannot be read."""
        with self.reading() as txn, _as_damage(self.folder):
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
        self._of_topic: dict[str, list[Database]] = {topic: [] for topic in TOPICS}
        for topic in TOPICS:
            for partition in range(1 if topic == WINDOWS else self._partitions):
                name = f"{topic}/{partition}"
                self.records[topic, partition] = self._env.open_db(name.encode())
                if topic in COMPACTED:
                    self.keys[topic, partition] = self._env.open_db(f"{name}/keys".encode())
        for (topic, _), database in (*self.records.items(), *self.keys.items()):
            self._of_topic[topic].append(database)

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


@contextmanager
def _as_damage(folder: Path) -> Generator[None]:
    try:
        yield
    except (struct.error, msgspec.DecodeError) as error:
        raise DataDamaged(f"{folder / 'data.mdb'} is damaged: {error}; {REMEDY}") from error
