"""What commands write fits a terminal: no line is broken by it, and what is there to be copied is whole."""

import fcntl
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
from rich.cells import cell_len

from collector.commands import cli
from tests.support.command import settings
from tests.support.processes import COMMAND, environment_of, free_ports
from tests.support.service import ROOT
from tests.support.table import for_each

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""Colours, and what a progress bar does with the cursor."""
_ERASED = re.compile(r"[^\n]*\n(?:\r|\x1b\[\?25h)*\x1b\[1A\x1b\[2K")
"""A line that was left and then erased, as a progress bar is at its end."""


def on_terminal(
    *arguments: str,
    columns: int,
    through: Sequence[str] = (),
    until: Callable[[str], bool] = lambda _: False,
    timeout: float = 100.0,
    cwd: Path = ROOT,
) -> tuple[int, str]:
    """Exit code and text of `spanwise ARGUMENTS`, whose result may go `through` another command.

    Ctrl-C is typed once `until` holds for what has been written.
    """
    terminal, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = environment_of({"TERM": "xterm-256color"})
    command = [*COMMAND, *arguments]
    if through:
        command = ["bash", "-c", f"{shlex.join(command)} | {shlex.join(through)}"]
    process = subprocess.Popen(
        command,
        cwd=cwd,
        stdin=inner,
        stdout=inner,
        stderr=inner,
        start_new_session=True,
        env=environment,
    )
    os.close(inner)
    written = b""
    deadline = time.monotonic() + timeout
    stopped = False
    try:
        while time.monotonic() < deadline:
            if not select.select([terminal], [], [], 1.0)[0]:
                continue
            try:
                some = os.read(terminal, 1 << 16)
            except OSError:  # Linux: every process has closed its side
                break
            if not some:
                break
            written += some
            if not stopped and until(text_of(written)):
                stopped = True
                os.killpg(process.pid, signal.SIGINT)
        code = process.wait(max(1.0, deadline - time.monotonic()))
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        os.close(terminal)
    return code, text_of(written)


def text_of(written: bytes) -> str:
    """Without control sequences and erased lines; of a line that was written over, what was written last."""
    kept = _ERASED.sub("", written.decode(errors="replace").replace("\r\n", "\n"))
    plain = _CONTROL.sub("", kept)
    return "\n".join(line.rpartition("\r")[2] for line in plain.split("\n"))


pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

CAPTURES = ROOT / "tests" / "data" / "captures"
RECORDING = str(CAPTURES / "strands" / "session.otlp")
LACKING = str(CAPTURES / "autogen")
SETTING = "judge.model: <a litellm model name> (SPANWISE_JUDGE__MODEL)"
STORY = (ROOT / "README.md").read_text().partition("```\n    0 s  good")[2].partition("```")[0]


def lines(*arguments: str, columns: int) -> list[str]:
    ended, said = on_terminal(*arguments, columns=columns)
    assert ended == 0, said
    return said.splitlines()


def wide(found: Iterable[str], columns: int) -> list[str]:
    """The lines that the terminal would break."""
    return [line for line in found if cell_len(line) > columns]


@pytest.mark.parametrize("columns", [80, 120])
@for_each(
    "arguments",
    [
        ("evaluate", RECORDING),
        ("evaluate", LACKING, "--failed"),
        ("inspect", RECORDING),
        ("inspect", LACKING),
        ("doctor", RECORDING),
        ("doctor", LACKING),
        ("evaluators",),
        ("evaluators", "--set", "evaluators.runaway.limit=5"),
        ("validate", "--connect", "--set", "data_dir=DATA"),
    ],
)
def test_no_line_is_wider_than_the_terminal(
    arguments: tuple[str, ...], columns: int, tmp_path: Path
) -> None:
    found = lines(*(each.replace("DATA", str(tmp_path)) for each in arguments), columns=columns)

    assert len(found) > 1
    assert wide(found, columns) == []


@for_each("command", ["", *cli.COMMANDS])
def test_help_fits_and_cuts_no_sentence(command: str) -> None:
    usage, *rest = lines(*command.split(), "--help", columns=80)

    assert usage.startswith("Usage: spanwise")
    assert wide((usage, *rest), 80) == []
    assert [line for line in rest if line.endswith(("...", "e.g."))] == []


def test_the_first_lines_of_run_can_be_copied(tmp_path: Path) -> None:
    """Each variable stands in one line, and the command goes on after a backslash."""
    grpc, http, admin = free_ports(3)
    code, said = on_terminal(
        "run",
        *settings(f"receiver.grpc.port={grpc}", f"receiver.http.port={http}"),
        *settings(f"admin.port={admin}", f"data_dir={tmp_path / 'data'}"),
        columns=80,
        until=lambda text: text.count("my_agent.py\n") == 2,
    )

    assert code == 0, said
    assert "Traceback" not in said
    assert (
        f"""send over gRPC:
    OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:{grpc} \\
    OTEL_EXPORTER_OTLP_PROTOCOL=grpc python my_agent.py
send over HTTP:
    OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:{http} \\
    OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf python my_agent.py
"""
        in said
    )


def test_a_setting_of_the_doctor_is_one_line_however_narrow_the_terminal() -> None:
    found = lines("doctor", RECORDING, columns=50)

    assert [line.strip() for line in found if SETTING in line] == [f"no_judge: {SETTING}"]


def test_the_demo_tells_its_story_within_80_columns(tmp_path: Path) -> None:
    """Its introduction as it is written, and each of its later lines as README shows it."""
    ports = ("receiver.grpc.port=0", "receiver.http.port=0", "admin.port=0", "workers=1")

    code, said = on_terminal(
        *("demo", "--no-quality", *settings(*ports)),
        columns=80,
        until=lambda text: "  good " in text,
        cwd=tmp_path,
    )

    assert code == 0, said
    assert "Traceback" not in said
    header = said[: said.index("  good ")].splitlines()
    assert [line for line in wide(header, 80) if str(tmp_path) not in line] == []
    assert wide(("    0 s  good" + STORY).splitlines(), 80) == []


def test_no_bar_is_mixed_with_lines_that_go_through_a_pipe_to_the_terminal() -> None:
    code, said = on_terminal("evaluate", RECORDING, columns=80, through=("cat",))

    assert code == 0, said
    assert "1 session failed somewhere" in said.splitlines()[0]
    assert "━" not in said
