import os
from pathlib import Path

import pytest

from collector.base.cores import usable_cores
from collector.config.tree import Config


@pytest.fixture(autouse=True)
def sixteen(monkeypatch: pytest.MonkeyPatch) -> None:
    def many(_: int) -> frozenset[int]:
        return frozenset(range(16))

    monkeypatch.setattr(os, "sched_getaffinity", many)


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def cores(folder: Path, membership: str, files: dict[str, str]) -> int:
    written(folder, {"own": membership, **files})
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


def test_the_affinity_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def third(_: int) -> frozenset[int]:
        return frozenset({3})

    monkeypatch.setattr(os, "sched_getaffinity", third)
    assert cores(tmp_path, "0::/\n", {"groups/cpu.max": "max 100000"}) == 1
    assert Config().worker_count == 1


def test_without_proc_and_groups_the_affinity_stands(tmp_path: Path) -> None:
    assert usable_cores(tmp_path / "none", tmp_path / "none") == 16
