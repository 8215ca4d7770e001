"""The command line as a process of its own, the way a user types it; or within this one."""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

from collector.commands.cli import main
from tests.support.processes import ROOT, started


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

    def assert_one_line(self, *words: str) -> None:
        """It failed as a user's mistake does: with one line, which has these words."""
        assert self.code in (1, 2), (self.code, self.err[-2000:])
        assert len(self.complaints) == 1, self.err[-2000:]
        assert [word for word in words if word not in self.err] == [], self.err


def settings(*given: str) -> list[str]:
    """`path=value` each, as arguments."""
    return [part for each in given for part in ("--set", each)]


def evaluated(
    *arguments: str, timeout: float = 100.0, environment: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """The signals of `spanwise evaluate ARGUMENTS`, which succeeds."""
    given = (*arguments, "--format", "jsonl")
    ended = spanwise("evaluate", *given, timeout=timeout, environment=environment)
    assert ended.code == 0, ended.err
    return [json.loads(line) for line in ended.out.splitlines()]


def spanwise(
    *arguments: str,
    timeout: float = 100.0,
    environment: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
) -> Ended:
    """Run `spanwise ARGUMENTS` to its end, in that folder."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = started(arguments, environment or {}, (out, err), cwd=cwd)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return Ended(code=code, out=_text(out), err=_text(err))


Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `spanwise ARGUMENTS` within this process; what it printed is what it alone did."""

    def ran(*arguments: object) -> Ended:
        capsys.readouterr()
        code = main([str(each) for each in arguments])
        said = capsys.readouterr()
        return Ended(code=code, out=said.out, err=said.err)

    return ran


def _text(file: IO[bytes]) -> str:
    """As `subprocess` has it with `text=True`."""
    file.seek(0)
    return file.read().decode().replace("\r\n", "\n").replace("\r", "\n")
