"""The modes of the data folder."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.base.files import keep_private


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_what_an_older_version_wrote_becomes_private(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir(mode=0o755)
    (tmp_path / "log" / "data.mdb").touch(0o644)
    (tmp_path / "signals.jsonl").touch(0o644)

    keep_private(tmp_path)

    assert [mode(tmp_path), mode(tmp_path / "log")] == [0o700, 0o700]
    assert mode(tmp_path / "log" / "data.mdb") == mode(tmp_path / "signals.jsonl") == 0o600


def test_what_is_written_from_then_on_is_private(tmp_path: Path) -> None:
    keep_private(tmp_path / "data")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").touch()

    assert (mode(tmp_path / "data"), mode(tmp_path / "data" / "file")) == (0o700, 0o600)


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
