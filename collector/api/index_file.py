"""The file of the index: one connection that writes, some that read, and the bound of its bytes.

The file and its write-ahead log stay within the size together: a sixteenth is the log's.
"""

import logging
import secrets
import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from collector.api.charts import IndexReader
from collector.api.packing import Packing, common_text
from collector.api.store import SCHEMA
from collector.base import sqlite_file

_log = logging.getLogger(__name__)
NAME = "index.sqlite"
VERSION = b"9"
"""Of what entries hold; another one starts empty. 9: scores of others."""
_WAL_SHARE = 16
_WRITER_CACHE, _READER_CACHE = 4 << 20, 1 << 20
_IDLE_READERS = 4
"""Connections that wait for the next read."""


class Closed(sqlite3.OperationalError):
    """The file is closed: before its first `open`, while it is opened again, or for good."""


class IndexFile:
    """Opened by `open`; a closed one may be opened again.

    `size`: bytes of the file with its write-ahead log. `content`: whether it holds message content; a file made
    otherwise starts empty.
    """

    def __init__(self, folder: Path, *, size: int, content: bool) -> None:
        self.folder = folder
        self._path = folder / NAME
        self._wal = size // _WAL_SHARE
        self._pages = (size - self._wal) // sqlite_file.PAGE
        self._version = VERSION + (b"+content" if content else b"")
        self._writer: sqlite3.Connection | None = None
        self._dictionary = b""
        self.id = ""  # of its entries: another one once it began empty
        self._packing = Packing(b"")
        self._lock = threading.Lock()
        self._idle: list[IndexReader] = []
        self._opened = 0

    @property
    def limit(self) -> int:
        return self._pages * sqlite_file.PAGE

    def open(self) -> None:
        """Open the file, or begin an empty one where it is missing, damaged or of another form.

        Raises sqlite3.Error: it cannot be opened. Raises OSError: the same.
        """
        try:
            self._open()
        except sqlite3.Error as error:
            if not sqlite_file.is_damage(error):
                raise
            _log.warning("The index starts empty: %s is damaged: %s.", self._path, error)
            sqlite_file.discard(self._path)
            self._open()

    def _open(self) -> None:
        writer = sqlite_file.connect(self._path, cache=_WRITER_CACHE, create=True)
        try:
            sqlite_file.prepare(writer, pages=self._pages, wal=self._wal)
            about = self._about(writer)
            if about.get("version") != self._version:
                writer = self._anew(writer)
                about = self._about(writer)
            if "id" not in about:
                about["id"] = secrets.token_hex(4).encode()
                with sqlite_file.transaction(writer):
                    writer.execute("INSERT INTO about VALUES ('id', ?)", (about["id"],))
        except BaseException:
            writer.close()
            raise
        with self._lock:
            self._writer = writer
            self._dictionary = about["dictionary"]
            self.id = about["id"].decode()
            self._packing = Packing(self._dictionary)
            self._opened += 1

    def _about(self, connection: sqlite3.Connection) -> dict[str, bytes]:
        made = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        rows = connection.execute("SELECT name, value FROM about") if made else ()
        return dict(rows)

    def _anew(self, writer: sqlite3.Connection) -> sqlite3.Connection:
        if writer.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            writer.close()
            sqlite_file.discard(self._path)
            writer = sqlite_file.connect(self._path, cache=_WRITER_CACHE, create=True)
            sqlite_file.prepare(writer, pages=self._pages, wal=self._wal)
        with sqlite_file.transaction(writer):
            for statement in SCHEMA.split(";\n"):
                writer.execute(statement)
            about = (("version", self._version), ("dictionary", common_text()))
            writer.executemany("INSERT INTO about VALUES (?, ?)", about)
        return writer

    def start_empty(self) -> None:
        """Remove the file and begin an empty one; reads under way end as they began.

        Raises sqlite3.Error: it cannot be opened. Raises OSError: it cannot be removed.
        """
        self.close()
        sqlite_file.discard(self._path)
        self._open()

    def close(self) -> None:
        """Close every connection that is not reading now; those close after their read."""
        with self._lock:
            idle, self._idle = self._idle, []
            writer, self._writer = self._writer, None
            self._opened += 1
        for each in idle:
            each.connection.close()
        if writer is not None:
            writer.close()

    @contextmanager
    def reading(self) -> Generator[IndexReader]:
        """What is committed now. Raises Closed: it is. Raises sqlite3.Error: the file cannot be read."""
        with self._lock:
            opened, dictionary = self._opened, self._dictionary
            if self._writer is None:
                raise Closed("the index is closed")
            reading = self._idle.pop() if self._idle else None
        if reading is None:
            connection = sqlite_file.connect(self._path, cache=_READER_CACHE)
            reading = IndexReader(connection, Packing(dictionary))
        try:
            with sqlite_file.transaction(reading.connection, "BEGIN"):
                yield reading
        except BaseException:
            reading.connection.close()
            raise
        with self._lock:
            if opened == self._opened and len(self._idle) < _IDLE_READERS:
                self._idle.append(reading)
                return
        reading.connection.close()

    @contextmanager
    def writing(self) -> Generator[tuple[sqlite3.Connection, Packing]]:
        """A write transaction; an error takes all of it back.

        Raises sqlite3.Error: the file failed. Raises OSError: its disk is full.
        """
        writer = self._required()
        try:
            with sqlite_file.transaction(writer):
                yield writer, self._packing
        except sqlite3.Error as error:
            found = sqlite_file.named(error, self._path)
            if found is error:
                raise
            raise found from error

    def used(self) -> int:
        """Bytes of all pages that hold something."""
        return (self._number("page_count") - self._number("freelist_count")) * sqlite_file.PAGE

    def is_at_limit(self) -> bool:
        """Whether the file has nearly all the pages that it may have; else it is its disk that has no room."""
        return self._number("page_count") > 0.9 * self._pages

    def keep_within(self) -> None:
        """Give pages back of a file that is larger than it may be, and start a new log once it is too long."""
        surplus = self._number("page_count") - self._pages
        if surplus > 0:
            # `execute` would give back one page: it ends at the first row that has no columns.
            self._required().executescript(f"PRAGMA incremental_vacuum({surplus})")
            self._checkpoint()
        with suppress(FileNotFoundError):
            if Path(f"{self._path}-wal").stat().st_size > self._wal:
                self._checkpoint()

    def sync(self) -> None:
        """What was written is on the disk when this returns. Raises OSError: the disk failed."""
        sqlite_file.sync(self._path)

    def _checkpoint(self) -> None:
        self._required().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _number(self, name: str) -> int:
        return self._required().execute(f"PRAGMA {name}").fetchone()[0]

    def _required(self) -> sqlite3.Connection:
        if self._writer is None:
            raise Closed("the index is closed")
        return self._writer
