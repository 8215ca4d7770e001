"""A folder that cannot hold the log: one line that names the setting, and what the file system lacks."""

import errno
import fcntl
import os
from pathlib import Path
from typing import Any

import lmdb
import pytest

from collector.base.clock import wall
from collector.base.errors import ConfigError
from collector.base.telemetry import Telemetry
from collector.log.disk.disk_log import DiskLog


async def complaint(folder: Path) -> str:
    with pytest.raises(ConfigError) as raised:
        await DiskLog.open(folder, max_size=64 << 20, clock=wall, telemetry=Telemetry(), groups={})
    (line,) = str(raised.value).splitlines()
    return line


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
async def test_a_file_system_without_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    line = await complaint(tmp_path / "log")
    assert "has no locks" in line
    assert "data_dir: give a folder on a local disk" in line


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENODEV, ["cannot map files", "data_dir: give a folder on a local disk"]),
        (errno.EINVAL, ["cannot map files", "data_dir"]),
        (errno.ENOMEM, ["no address space for a map of 128 MiB", "log.disk.max_size", "ulimit -v"]),
        (errno.EFBIG, ["no file of 128 MiB", "log.disk.max_size"]),
        (errno.EACCES, ["Permission denied", "data_dir"]),
    ],
)
async def test_a_file_system_without_maps_and_a_map_without_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: list[str]
) -> None:
    def refuse(path: str, **_: Any) -> None:
        raise lmdb.Error(f"{path}: {os.strerror(number)}")

    monkeypatch.setattr(lmdb, "open", refuse)
    line = await complaint(tmp_path / "log")
    assert str(tmp_path / "log") in line
    for word in words:
        assert word in line
