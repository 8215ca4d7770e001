"""A command on a terminal of a given size: what a person would see of it, line by line."""

import fcntl
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.service import ROOT, environment_of
from tests.support.warm import warm

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""Colours, and what a progress bar does with the cursor."""
_ERASED = re.compile(r"[^\n]*\n(?:\r|\x1b\[\?25h)*\x1b\[1A\x1b\[2K")
"""A line that was left and then erased, as a progress bar is at its end."""


def on_terminal(
    *arguments: str,
    columns: int,
    rows: int,
    through: Sequence[str] = (),
    until: Callable[[str], bool] = lambda _: False,
    timeout: float = 100.0,
    cwd: Path = ROOT,
) -> tuple[int, str]:
    """Exit code and text of `spanwise ARGUMENTS`, whose result may go `through` another command.

    Ctrl-C is typed once `until` holds for what has been written.
    """
    terminal, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    environment = environment_of({"TERM": "xterm-256color"})
    if through:
        command = [sys.executable, "-m", "collector.commands.start", *arguments]
        process = subprocess.Popen(
            ["bash", "-c", f"{shlex.join(command)} | {shlex.join(through)}"],
            cwd=cwd,
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
            env=environment,
        )
    else:
        process = warm(arguments).start(arguments, environment, cwd, inner, inner, inner)
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
