"""A program as a process of its own, run to its end."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]


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
