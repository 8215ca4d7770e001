"""The cores that this process may use: those of its affinity, within the quota of its control groups."""

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")


def usable_cores(groups: Path = GROUPS, own: Path = OWN) -> int:
    quotas = [math.ceil(each) for each in _quotas(groups, own)]
    return max(1, min([_affinity(), *quotas]))


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 2


def _quotas(groups: Path, own: Path) -> Iterator[float]:
    """In cores, of each group that this process is in; a group of groups limits all within."""
    for controllers, path in _memberships(own):
        if controllers and "cpu" not in controllers.split(","):
            continue
        # Version 1 has a tree of groups for each controller. In a container its own group may be the root of the tree,
        # whatever /proc says.
        root = groups / "cpu" if controllers else groups
        inner = root / path.strip("/")
        for folder in (inner, *inner.parents):
            if folder.is_relative_to(root):
                with suppress(OSError, ValueError, ZeroDivisionError):
                    yield _quota(folder)


def _memberships(own: Path) -> Iterator[tuple[str, str]]:
    """Controllers and path of each group; version 2 has one, without controllers."""
    with suppress(OSError):
        for line in own.read_text().splitlines():
            parts = line.split(":", 2)
            if len(parts) == 3:
                yield parts[1], parts[2]


def _quota(folder: Path) -> float:
    """Raises ValueError where there is none."""
    file = folder / "cpu.max"
    if file.exists():
        quota, period = file.read_text().split()[:2]
    else:
        quota = (folder / "cpu.cfs_quota_us").read_text()
        period = (folder / "cpu.cfs_period_us").read_text()
    if float(quota) <= 0:  # -1: no limit; `max` is not a number
        raise ValueError("no quota")
    return float(quota) / float(period)
