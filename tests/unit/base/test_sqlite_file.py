import errno
import os
import sqlite3
from pathlib import Path

import pytest

from collector.base.sqlite_file import connect, is_damage, is_full, named, prepare, transaction


def of(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("it failed")
    error.sqlite_errorcode = code
    return error


def with_free_bytes(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    real = os.statvfs("/")
    fields = list(real)
    fields[1], fields[4] = 1, count

    def half_full(path: Path) -> os.statvfs_result:
        return os.statvfs_result(fields)

    monkeypatch.setattr(os, "statvfs", half_full)


def test_what_fails_on_a_full_disk_is_named_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = of(sqlite3.SQLITE_IOERR_SHMSIZE)
    with_free_bytes(monkeypatch, 4096)
    assert getattr(named(failed, tmp_path / "x"), "errno", None) == errno.ENOSPC
    assert named(of(sqlite3.SQLITE_CORRUPT), tmp_path / "x").args == ("it failed",)
    assert isinstance(named(of(sqlite3.SQLITE_ERROR), tmp_path / "x"), sqlite3.Error)

    with_free_bytes(monkeypatch, 1 << 20)
    assert named(failed, tmp_path / "x") is failed


def test_a_transaction_that_fails_changes_nothing(tmp_path: Path) -> None:
    connection = connect(tmp_path / "file", cache=1 << 20, create=True)
    prepare(connection, pages=100, wal=1 << 20)
    connection.execute("CREATE TABLE kept (number INTEGER)")

    def fail() -> None:
        with transaction(connection):
            connection.execute("INSERT INTO kept VALUES (1)")
            raise ValueError("unforeseen")

    with pytest.raises(ValueError, match="unforeseen"):
        fail()

    assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)
    connection.close()


def test_a_file_never_has_more_pages_than_it_may(tmp_path: Path) -> None:
    connection = connect(tmp_path / "file", cache=1 << 20, create=True)
    prepare(connection, pages=20, wal=1 << 20)
    connection.execute("CREATE TABLE kept (text TEXT)")

    def fill() -> None:
        with transaction(connection):
            for _ in range(30):
                connection.execute("INSERT INTO kept VALUES (?)", ("x" * 4_000,))

    with pytest.raises(sqlite3.OperationalError) as refused:
        fill()

    assert is_full(refused.value)
    assert not is_damage(refused.value)
    connection.close()
    assert (tmp_path / "file").stat().st_size <= 20 * 4096


def test_a_text_that_is_not_utf_8_is_damage(tmp_path: Path) -> None:
    connection = connect(tmp_path / "file", cache=1 << 20, create=True)

    with pytest.raises(sqlite3.OperationalError) as met:
        connection.execute("SELECT CAST(x'ff' AS TEXT)").fetchone()

    assert is_damage(met.value)
    connection.close()
