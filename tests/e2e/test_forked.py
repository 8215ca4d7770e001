"""A command that is forked is the command: `warm.py` may spare the imports and change nothing else."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import Ended, spanwise
from tests.support.processes import ran
from tests.support.service import Service
from tests.support.table import for_each
from tests.support.warm import ROOT, can_fork, environment_of, warm

pytestmark = [pytest.mark.e2e]


@for_each(
    "arguments",
    [
        ("--version",),
        ("evaluate", "--help"),
        ("config", "schema"),
        ("evaluate", "relative.otlp"),
        ("rnu",),
        ("run", "--set", "admin"),
    ],
)
def test_it_says_and_returns_what_it_does_from_a_shell(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    recording = ROOT / "tests" / "data" / "captures" / "strands" / "session.otlp"
    (tmp_path / "relative.otlp").write_bytes(recording.read_bytes())
    command = (sys.executable, "-m", "collector.commands.start", *arguments)
    typed = ran(*command, cwd=tmp_path, env=environment_of({}), timeout=100)

    expected = Ended(code=typed.returncode, out=typed.stdout, err=typed.stderr)
    assert spanwise(*arguments, cwd=tmp_path) == expected


def test_it_leads_a_session_and_its_end_is_its_own(tmp_path: Path) -> None:
    with Service(tmp_path / "data", "embedder.kind=none") as service:
        assert os.getsid(service.pid) == service.pid != os.getsid(0)
        with pytest.raises(subprocess.TimeoutExpired):
            service.wait(0.1)
        assert service.is_running
        service.kill()
        assert service.wait(10) == -signal.SIGKILL
        service.start()
        assert service.stop() == 0
        assert not Path(f"/proc/{service.pid}").exists()


def test_its_environment_is_that_of_its_start(tmp_path: Path) -> None:
    file = tmp_path / "out"
    environment = {"SPANWISE_WINDOWS__TRACE__ROOT_GRACE": "never"}
    with file.open("wb") as out:
        forked = warm(["validate"]).start(
            ["validate"], environment, tmp_path, out.fileno(), out.fileno()
        )

        assert forked.wait(30) == 1
    assert "windows.trace.root_grace" in file.read_text()
    assert spanwise("validate").code == 0


def test_what_is_read_by_an_import_is_not_given_to_a_fork() -> None:
    names = ("PYTHONPATH", "LD_PRELOAD", "COLUMNS", "HTTP_PROXY")
    assert [name for name in names if can_fork({name: ""})] == []
    assert can_fork({"SPANWISE_WORKERS": "1"})
