"""A command on a terminal of a given size: what a person would see of it, line by line."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

from tests.support.service import ROOT, environment_of

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""Colours, and what a progress bar does with the cursor."""


def on_terminal(
    *arguments: str,
    columns: int,
    rows: int,
    until: Callable[[str], bool] = lambda _: False,
    timeout: float = 100.0,
    cwd: Path = ROOT,
) -> tuple[int, str]:
    """Exit code and text of `spanwise ARGUMENTS`; Ctrl-C is typed once `until` holds for what has been written."""
    terminal, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "collector.cli", *arguments],
        cwd=cwd,
        stdin=inner,
        stdout=inner,
        stderr=inner,
        start_new_session=True,
        env=environment_of({"TERM": "xterm-256color"}),
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
    """Without control sequences; of a line that was written over, what was written last."""
    plain = _CONTROL.sub("", written.decode(errors="replace")).replace("\r\n", "\n")
    return "\n".join(line.rpartition("\r")[2] for line in plain.split("\n"))
