"""What is asked of the machine: cores, open files, modes of the data folder, proxies; and files of SQLite."""

import errno
import os
import resource
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.base.cores import usable_cores
from collector.base.files import keep_private
from collector.base.net import ENOUGH, connections, spare_loopback
from collector.base.sqlite_file import connect, is_damage, is_full, named, prepare, transaction
from collector.commands.cli import main
from collector.config.tree import Config
from collector.otlp.client import proxy_for
from tests.support.table import for_each


@pytest.fixture(autouse=True)
def sixteen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: frozenset(range(16)))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]


def cores(folder: Path, membership: str, files: dict[str, str]) -> int:
    for name, text in {"own": membership, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return usable_cores(folder / "groups", folder / "own")


@pytest.mark.parametrize(
    ("membership", "files", "expected"),
    [
        ("0::/\n", {"groups/cpu.max": "200000 100000\n"}, 2),
        ("0::/\n", {"groups/cpu.max": "250000 100000\n"}, 3),
        ("0::/\n", {"groups/cpu.max": "10000 100000\n"}, 1),
        ("0::/\n", {"groups/cpu.max": "max 100000\n"}, 16),
        ("0::/a/b\n", {"groups/a/cpu.max": "400000 100000\n", "groups/a/b/cpu.max": "max 100000\n"}, 4),
        ("0::/not/mounted\n", {"groups/cpu.max": "300000 100000\n"}, 3),
        ("4:cpu,cpuacct:/x\n1:memory:/x\n",
         {"groups/cpu/x/cpu.cfs_quota_us": "200000\n", "groups/cpu/x/cpu.cfs_period_us": "100000\n"}, 2),
        ("4:cpu,cpuacct:/\n",
         {"groups/cpu/cpu.cfs_quota_us": "-1\n", "groups/cpu/cpu.cfs_period_us": "100000\n"}, 16),
        ("0::/\n", {"groups/cpu.max": "rubbish"}, 16),
        ("", {}, 16),
    ],
)  # fmt: skip
def test_a_quota_of_any_group_limits(
    tmp_path: Path, membership: str, files: dict[str, str], expected: int
) -> None:
    assert cores(tmp_path, membership, files) == expected


def test_the_affinity_limits_and_without_proc_and_groups_it_is_all_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert usable_cores(tmp_path / "none", tmp_path / "none") == 16
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: frozenset({3}))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]

    assert cores(tmp_path, "0::/\n", {"groups/cpu.max": "max 100000"}) == 1
    assert Config().worker_count == 1


NO_LIMIT = resource.RLIM_INFINITY
Limits = tuple[int, int]


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ((1024, 4096), (4096, 4096), 1000),
        ((1024, 1024), (1024, 1024), 256),
        ((1024, NO_LIMIT), (ENOUGH, NO_LIMIT), 1000),
        ((1 << 20, 1 << 20), (1 << 20, 1 << 20), 1000),
        ((NO_LIMIT, NO_LIMIT), (NO_LIMIT, NO_LIMIT), 1000),
    ],
)
def test_the_limit_of_open_files_is_raised_and_never_lowered(
    monkeypatch: pytest.MonkeyPatch, before: Limits, after: Limits, found: int
) -> None:
    limits = [before]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    monkeypatch.setattr(resource, "setrlimit", lambda _, wanted: limits.append(wanted))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]

    assert connections(1000, share=1 / 4) == found
    assert limits[-1] == after


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_what_an_older_version_wrote_and_what_is_written_from_then_on_is_private(
    tmp_path: Path,
) -> None:
    (tmp_path / "log").mkdir(mode=0o755)
    (tmp_path / "log" / "data.mdb").touch(0o644)
    (tmp_path / "signals.jsonl").touch(0o644)

    keep_private(tmp_path)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "file").touch()

    assert {mode(each) for each in (tmp_path, tmp_path / "log", tmp_path / "new")} == {0o700}
    files = ("log/data.mdb", "signals.jsonl", "new/file")
    assert {mode(tmp_path / each) for each in files} == {0o600}


def test_what_is_not_ours_keeps_its_modes(tmp_path: Path) -> None:
    shared, elsewhere = tmp_path / "shared", tmp_path / "elsewhere"
    shared.mkdir()
    elsewhere.touch(0o644)
    (shared / "notes.txt").touch(0o644)
    (shared / "signals.jsonl").symlink_to(elsewhere)
    shared.chmod(0o1777)

    keep_private(shared)

    assert (shared.stat().st_mode & 0o7777, mode(shared / "notes.txt")) == (0o1777, 0o644)
    assert mode(elsewhere) == 0o644


NAMES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.setenv(name, "")  # so that it is as before after the test
        monkeypatch.delenv(name)
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:3128")
    monkeypatch.setenv("HTTPS_PROXY", "proxy:3129")
    monkeypatch.setenv("NO_PROXY", "collector,.svc.cluster.local")


@for_each(
    ("host", "tls", "expected"),
    [
        ("backend.example", False, "http://proxy:3128"),
        ("backend.example", True, "http://proxy:3129"),
        ("collector", False, None),
        ("otel.observability.svc.cluster.local", True, None),
        *((host, False, None) for host in ("localhost", "127.0.0.1", "127.8.8.8", "::1")),
    ],
)
def test_loopback_and_what_no_proxy_names_are_reached_directly(
    host: str, tls: bool, expected: str | None
) -> None:
    assert proxy_for(host, tls=tls) == expected


def test_without_a_proxy_all_are_reached_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HTTP_PROXY")

    assert proxy_for("backend.example", tls=False) is None


@pytest.mark.parametrize(
    ("given", "then"),
    [
        ({}, "localhost,127.0.0.1,::1"),
        ({"NO_PROXY": "a, .b,localhost"}, "a,.b,localhost,127.0.0.1,::1"),
        ({"no_proxy": "a", "NO_PROXY": "b"}, "a,localhost,127.0.0.1,::1"),
        ({"NO_PROXY": "*"}, "*"),
    ],
)
def test_libraries_are_set_to_spare_loopback(given: dict[str, str], then: str) -> None:
    environ = dict(given)

    spare_loopback(environ)

    assert environ == {"no_proxy": then, "NO_PROXY": then}


def test_each_command_spares_loopback() -> None:
    assert main(["--version"]) == 0

    assert os.environ["no_proxy"] == "collector,.svc.cluster.local,localhost,127.0.0.1,::1"


def of(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("it failed")
    error.sqlite_errorcode = code
    return error


def with_free_bytes(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    fields = list(os.statvfs("/"))
    fields[1], fields[4] = 1, count
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result(fields))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]


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


def test_a_file_never_has_more_pages_than_it_may_and_a_text_that_is_not_utf_8_is_damage(
    tmp_path: Path,
) -> None:
    connection = connect(tmp_path / "file", cache=1 << 20, create=True)
    prepare(connection, pages=20, wal=1 << 20)
    connection.execute("CREATE TABLE kept (text TEXT)")

    def fill() -> None:
        with transaction(connection):
            for _ in range(30):
                connection.execute("INSERT INTO kept VALUES (?)", ("x" * 4_000,))

    with pytest.raises(sqlite3.OperationalError) as refused:
        fill()
    with pytest.raises(sqlite3.OperationalError) as met:
        connection.execute("SELECT CAST(x'ff' AS TEXT)").fetchone()

    assert (is_full(refused.value), is_damage(refused.value)) == (True, False)
    assert is_damage(met.value)
    connection.close()
    assert (tmp_path / "file").stat().st_size <= 20 * 4096
