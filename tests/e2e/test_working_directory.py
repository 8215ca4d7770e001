"""What stands in the working directory is the user's, and never imported: commands start, score and stop beside it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.command import settings
from tests.support.processes import environment_of, ran
from tests.support.service import ROOT, Service, children

pytestmark = [pytest.mark.e2e]

CAPTURE = ROOT / "tests" / "data" / "captures" / "strands" / "session.otlp"
TRAP = "raise SystemExit('imported from the working directory')\n"
NAMES = ("json", "litellm", "typer", "grpc", "socket", "numpy", "types", "logging", "uvloop")
PACKAGES = ("evaluators", "collector", "opentelemetry")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's project, whose names are ours too."""
    made = tmp_path / "project"
    for name in PACKAGES:
        (made / name).mkdir(parents=True)
        (made / name / "__init__.py").write_text(TRAP)
    for name in NAMES:
        (made / f"{name}.py").write_text(TRAP)
    return made


def in_folder(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return ran(*command, cwd=folder, env=environment_of({}), timeout=300)


def as_console_script(*arguments: str) -> list[str]:
    """As the installed script does it, whose folder stands first on the path instead of the working directory."""
    words = "import sys; from collector.commands.start import main; sys.exit(main())"
    return [sys.executable, "-P", "-c", words, *arguments]


def test_the_console_script_scores_beside_such_a_folder(folder: Path) -> None:
    done = in_folder(folder, *as_console_script("evaluate", str(CAPTURE)))

    assert done.returncode == 0, done.stderr
    assert "agent_reliability" in done.stdout


@pytest.mark.parametrize("name", [each for each in NAMES if each not in ("types", "socket")])
def test_python_m_does_too_whatever_one_file_is_called(tmp_path: Path, name: str) -> None:
    """Python itself imports some modules before any line of ours (`types`); `-P` is what helps against those."""
    (tmp_path / f"{name}.py").write_text(TRAP)

    done = in_folder(tmp_path, sys.executable, "-m", "collector.commands.start", "evaluators")

    assert done.returncode == 0, done.stderr
    assert "tool_correctness" in done.stdout


def test_the_service_and_its_workers_start_and_stop_there(tmp_path: Path, folder: Path) -> None:
    service = Service(tmp_path / "data", cwd=folder, safe_path=True)
    with service:
        service.become_ready()
        service.wait_for("a worker", lambda: len(children(service.pid)) == 1)

        assert service.stop() == 0
    assert "working directory" not in service.output.read_text()
    assert "Traceback" not in service.output.read_text()


# --- Ctrl-C while it starts ------------------------------------------------------------------------------------------

MARK = "import time:"


@pytest.mark.parametrize(
    ("command", "imported", "after"),
    [
        *(("run", each, 0.0) for each in ("typer", "pydantic", "grpc")),
        # In the first second behind the imports; until a command begins they are the same.
        *(("run", "collector.service.app", after) for after in (0.0, 0.1, 0.3, 0.6, 1.0)),
        *(("demo", "collector.service.app", after) for after in (0.0, 0.3, 1.0)),
    ],
)
def test_ctrl_c_ends_it_without_a_complaint(
    tmp_path: Path, command: str, imported: str, after: float
) -> None:
    process = started(tmp_path, command)
    wait_for_import(process, imported)
    time.sleep(after)
    os.killpg(process.pid, signal.SIGINT)
    try:
        _, rest = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise

    assert process.returncode in (0, 130, -signal.SIGINT)
    assert complaints(rest) == []
    assert [each for each in (tmp_path / "tmp").iterdir() if "spanwise" in each.name] == []


INTERRUPTED = """
import os, signal, sys, uvloop
made = uvloop.new_event_loop

def interrupted():
    loop = made()
    os.kill(os.getpid(), signal.SIGINT)
    return loop

uvloop.run.__kwdefaults__["loop_factory"] = interrupted
from collector.commands.start import main
sys.exit(main())
"""


def test_ctrl_c_while_the_event_loop_is_made_ends_it_without_a_complaint(tmp_path: Path) -> None:
    ports = ("receiver.grpc.port=0", "receiver.http.port=0", "admin.port=0", "workers=1")
    command = [sys.executable, "-P", "-c", INTERRUPTED, "run", *settings(*ports)]
    done = in_folder(tmp_path, *command)

    assert done.returncode in (0, 130)
    assert complaints(done.stderr) == []


def started(tmp_path: Path, command: str) -> subprocess.Popen[str]:
    """A command that tells each import on stderr."""
    (tmp_path / "tmp").mkdir()
    given = {
        "SPANWISE_RECEIVER__GRPC__PORT": "0",
        "SPANWISE_RECEIVER__HTTP__PORT": "0",
        "SPANWISE_ADMIN__PORT": "0",
        "SPANWISE_WORKERS": "1",
        "TMPDIR": str(tmp_path / "tmp"),
        "PYTHONPROFILEIMPORTTIME": "1",
    }
    return subprocess.Popen(
        as_console_script(command),
        cwd=tmp_path,
        env=environment_of(given),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_import(process: subprocess.Popen[str], module: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(MARK) and line.rpartition("|")[2].strip().startswith(module):
            return
    raise AssertionError(f"{module} is not imported: {process.wait(10)}")


def complaints(said: str) -> list[str]:
    """What stands on stderr beside imports, and the log's lines of information."""
    return [
        line for line in said.splitlines() if line and MARK not in line and " INFO " not in line
    ]
