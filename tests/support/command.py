"""The command line as a process of its own, the way a user types it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.service import ROOT, environment_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def complaints(self) -> list[str]:
        """The lines on stderr."""
        return self.err.splitlines()


def spanwise(
    *arguments: str,
    timeout: float = 100.0,
    environment: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
) -> Ended:
    """Run `spanwise ARGUMENTS` to its end, in that folder."""
    done = subprocess.run(
        [sys.executable, "-m", "collector.commands.start", *arguments],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env=environment_of(environment or {}),
    )
    return Ended(code=done.returncode, out=done.stdout, err=done.stderr)
