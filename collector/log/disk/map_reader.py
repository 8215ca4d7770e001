"""The disk log as another process of the service reads it: parts of records, straight out of LMDB's map.

Each call is one short read transaction: one left open would keep pages from being used again. The file is opened when
it is first needed, and again after an error. Nothing is ever written.
"""

from collections.abc import Sequence
from pathlib import Path

import lmdb
from lmdb import _Database as Database

from collector.base.errors import LogUnavailable
from collector.log.disk.frames import read_values
from collector.log.port import Range

_DATABASES = 64  # partitions that can be read: more than the disk log has
_ATTEMPTS = 3
"""Each after the map was sized or opened again: the process that owns the log makes it larger."""


class MapReader:
    """Owned by one thread of a process that does not hold the log itself: LMDB allows a file once per process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._env: lmdb.Environment | None = None
        self._databases: dict[str, Database] = {}

    def read(self, topic: str, ranges: Sequence[Range]) -> list[bytes | None]:
        """The bytes at each (partition, offset, from, below); None: the record has expired or is damaged.

        Raises LogUnavailable: the log cannot be read.
        """
        error: lmdb.Error | None = None
        for _ in range(_ATTEMPTS):
            try:
                return self._read(self._opened(), topic, ranges)
            except lmdb.MapResizedError as resized:
                error = resized  # the other process has given the map more pages
                if self._env is not None:
                    self._env.set_mapsize(0)
            except lmdb.Error as failed:
                error = failed
                self.close()
        raise LogUnavailable(f"the log's map cannot be read: {error}") from error

    def close(self) -> None:
        """Close the file; it is opened again when it is needed."""
        if self._env is not None:
            self._env.close()
        self._env = None
        self._databases.clear()

    def _opened(self) -> lmdb.Environment:
        if self._env is None:
            env = lmdb.open(
                str(self._folder),
                readonly=True,
                create=False,
                max_dbs=_DATABASES,
                max_spare_txns=1,
            )
            env.set_mapsize(0)  # as large as the process that writes has made it
            self._env = env
        return self._env

    def _database(self, env: lmdb.Environment, name: str) -> Database:
        if name not in self._databases:
            self._databases[name] = env.open_db(name.encode(), create=False)
        return self._databases[name]

    def _read(
        self, env: lmdb.Environment, topic: str, ranges: Sequence[Range]
    ) -> list[bytes | None]:
        databases = {each[0]: self._database(env, f"{topic}/{each[0]}") for each in ranges}
        with env.begin(buffers=True) as txn:
            return read_values(txn, databases.__getitem__, ranges)
