"""A program as a process of its own, run to its end; and what the system says of a process."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
_TICKS = os.sysconf("SC_CLK_TCK")


def ran(
    *command: str | Path,
    timeout: float = 60.0,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    input: str | None = None,  # noqa: A002 - its name in `subprocess`
) -> subprocess.CompletedProcess[str]:
    """Its exit code and what it wrote, as text. Without `input` it can read nothing."""
    return subprocess.run(
        command,
        cwd=cwd,
        env=env,
        input="" if input is None else input,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def cpu_seconds(pid: int, *, reaped: bool = False) -> float:
    """User and system time of a process so far; `reaped`: and of the children that it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11 : 15 if reaped else 13])) / _TICKS


def status(pid: int, name: str) -> int:
    """A number of `/proc/PID/status`; memory in KiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise LookupError(name)
