"""The LMDB file behind the disk log: its databases, and what must outlive the records (offsets, time, commits).

meta              "time", "partitions", "next <topic> <partition>"
commits           msgpack [group, topic, partition] -> [offset, metadata]
<topic>/<n>       pieces of records (collector/log/disk/frames.py)
<topic>/<n>/keys  compacted topics: digest of the key -> offset of its newest record

Readers take snapshots on the event loop; one thread writes.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import lmdb
import msgspec
from lmdb import _Database as Database

from collector.errors import ConfigError
from collector.log.commits import CommitKey, Commits, Committed
from collector.log.embedded.staging import Place
from collector.log.port import COMPACTED, TOPICS, WINDOWS

_SLACK = 64 << 20
_STEP = 4 << 20
_TIME = b"time"
_PARTITIONS = b"partitions"
_DOUBLE = struct.Struct("<d")

_encode = msgspec.msgpack.Encoder().encode
_commit_key = msgspec.msgpack.Decoder(CommitKey).decode
_committed = msgspec.msgpack.Decoder(Committed).decode


@dataclass(frozen=True, slots=True)
class Heads:
    """Where the log stands: the next offset of every place, and the commits."""

    nexts: dict[Place, int]
    commits: Commits

    def copy(self) -> Heads:
        """One that can be changed and thrown away."""
        return Heads(dict(self.nexts), self.commits.copy())


class DiskStore:
    """Open for one process. The map has room beyond `max_size` for pages that wait to be used again.

    Raises:
        ConfigError: the folder holds another number of partitions.
    """

    def __init__(self, folder: Path, *, max_size: int, partitions: int) -> None:
        self.folder = folder
        self._map_size = max_size + min(max_size, _SLACK)
        self._partitions = partitions
        self._lock = threading.Lock()
        self._open()
        _sync_folder(folder)

    @property
    def places(self) -> tuple[Place, ...]:
        """Every topic with each of its partitions."""
        return tuple(self.records)

    def reopen(self) -> None:
        """After an error that LMDB does not recover from by itself (a meta page that could not be written)."""
        with self._lock:
            self._env.close()
            self._open()

    def grow(self) -> None:
        """Give a full map a few pages more, once: without any, nothing can be deleted either."""
        with self._lock:
            self._env.set_mapsize(self._map_size + _STEP)

    def close(self) -> None:
        """Let the file go."""
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
            stored = txn.get(_TIME, db=self.meta)
            return 0.0 if stored is None else _DOUBLE.unpack(stored)[0]

    def load_heads(self, groups: Mapping[str, frozenset[str]]) -> Heads:
        """What the last transaction left."""
        with self.reading() as txn:
            nexts = {
                place: int.from_bytes(stored, "big")
                for place in self.places
                if (stored := txn.get(_next_key(place), db=self.meta)) is not None
            }
            table = {_commit_key(k): _committed(v) for k, v in txn.cursor(self.commits)}
        return Heads(nexts, Commits(groups, table))

    def save(
        self,
        txn: lmdb.Transaction[bytes],
        *,
        time: float,
        nexts: Mapping[Place, int],
        commits: Mapping[CommitKey, Committed],
    ) -> None:
        """Put what changed into the transaction."""
        for place, offset in nexts.items():
            txn.put(_next_key(place), offset.to_bytes(8, "big"), db=self.meta)
        if nexts:
            txn.put(_TIME, _DOUBLE.pack(time), db=self.meta)
        for key, committed in commits.items():
            txn.put(_encode(key), _encode(committed), db=self.commits)

    def _open(self) -> None:
        databases = 2 + (len(TOPICS) + len(COMPACTED)) * self._partitions
        self._env = lmdb.open(
            str(self.folder),
            map_size=self._map_size,
            max_dbs=databases,
            max_spare_txns=1,
        )
        self._env.reader_check()
        self.page = self._env.stat()["psize"]
        self.meta = self._env.open_db(b"meta")
        self.commits = self._env.open_db(b"commits")
        self._check_partitions()
        self.records: dict[Place, Database] = {}
        self.keys: dict[Place, Database] = {}
        for topic in TOPICS:
            for partition in range(1 if topic == WINDOWS else self._partitions):
                name = f"{topic}/{partition}"
                self.records[topic, partition] = self._env.open_db(name.encode())
                if topic in COMPACTED:
                    self.keys[topic, partition] = self._env.open_db(f"{name}/keys".encode())

    def _check_partitions(self) -> None:
        wanted = str(self._partitions).encode()
        with self._env.begin(write=True, db=self.meta) as txn:
            found = txn.get(_PARTITIONS)
            if found is None:
                txn.put(_PARTITIONS, wanted)
        if found not in (None, wanted):
            self._env.close()
            raise ConfigError(
                f"{self.folder} holds a log of {found.decode()} partitions, not {wanted.decode()}; "
                "use that number, or another data_dir"
            )


def _next_key(place: Place) -> bytes:
    return f"next {place[0]} {place[1]}".encode()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
