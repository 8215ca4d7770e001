"""One SQLite file that fills again by itself: opened, classified as damaged, full or failing, removed.

SQLite checks what it reads, so a damaged page is an error and never a signal. The file is in WAL mode: readers see what
is committed while one connection writes. The process may be killed at any time; after a loss of power the file holds
what was committed before the last checkpoint or the last `sync`.
"""

import errno
import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

PAGE = 4096
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT})
_OF_DISK = _DAMAGED | {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
}
_SUFFIXES = ("", "-wal", "-shm", "-journal")
_NEEDED = 64 << 10
"""Free bytes without which SQLite cannot work: twice the file over which its connections share the log's state."""
_BUSY = 5.0  # seconds that a checkpoint waits for readers


def connect(path: Path, *, cache: int, create: bool = False) -> sqlite3.Connection:
    """A connection that begins and ends transactions only when asked to; any thread may use it, one at a time.

    `cache`: bytes of pages that the connection keeps. `create`: make the file, readable by its user alone, if it is
    missing. Raises OSError: the file cannot be made. Raises sqlite3.Error: it cannot be opened.
    """
    if create:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=_BUSY,
        cached_statements=64,
    )
    try:
        connection.execute(f"PRAGMA cache_size = -{cache // 1024}")
    except BaseException:
        connection.close()
        raise
    return connection


def prepare(connection: sqlite3.Connection, *, pages: int, wal: int, shared: bool = True) -> None:
    """Settings of the connection that writes; before the first table is made.

    `pages`: the most that the file may have. `wal`: bytes of the write-ahead log beyond which it is cut after a
    checkpoint. `shared`: whether other connections read the file; else each commit is on the disk when it returns.
    """
    for setting in (
        f"locking_mode = {'NORMAL' if shared else 'EXCLUSIVE'}",
        f"page_size = {PAGE}",
        "auto_vacuum = INCREMENTAL",
        "journal_mode = WAL",
        f"synchronous = {'NORMAL' if shared else 'FULL'}",
        "secure_delete = OFF",
        f"journal_size_limit = {wal}",
        f"wal_autocheckpoint = {max(16, wal // PAGE // 4)}",
        f"max_page_count = {pages}",
    ):
        connection.execute(f"PRAGMA {setting}").fetchall()


@contextmanager
def transaction(
    connection: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE"
) -> Generator[sqlite3.Connection]:
    connection.execute(begin)
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def sync(path: Path) -> None:
    """Everything that was committed is on the disk when this returns. Raises OSError: the disk failed."""
    try:
        descriptor = os.open(f"{path}-wal", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # all of it is in the file itself, which a checkpoint has synced
    try:
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)


def is_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite met pages or texts that it never wrote."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # Python's own, of a text that is not UTF-8
        return isinstance(error, sqlite3.OperationalError) and "decode" in str(error).lower()
    return code & 0xFF in _DAMAGED


def is_full(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL


def is_of_disk(error: sqlite3.Error) -> bool:
    """Whether the disk or the file failed; False: the statement was wrong."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in _OF_DISK


def named(error: sqlite3.Error | OSError, path: Path) -> sqlite3.Error | OSError:
    """The error, or that the disk is full: on a full disk SQLite mostly says only that reading or writing failed."""
    if isinstance(error, OSError) or not is_of_disk(error) or is_damage(error) or is_full(error):
        return error
    try:
        free = os.statvfs(path.parent)
    except OSError:
        return error
    if free.f_bavail * free.f_frsize >= _NEEDED:
        return error
    return OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)} ({error})", str(path))


def discard(path: Path) -> None:
    """Remove the file with what SQLite keeps beside it. Raises OSError: it cannot be removed."""
    for suffix in _SUFFIXES:
        Path(f"{path}{suffix}").unlink(missing_ok=True)
