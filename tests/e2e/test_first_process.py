"""SIGTERM to the first process of a container, early in its start: the kernel ignores it where there is no handler."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]
OWN = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc")


def test_sigterm_ends_the_first_process_while_it_imports(tmp_path: Path) -> None:
    run = (sys.executable, "-m", "collector.commands.start", "run", "--set", f"data_dir={tmp_path}")
    with subprocess.Popen([*OWN, *run]) as outer:
        try:
            first = handler_of_sigterm(outer.pid)
            os.kill(first, signal.SIGTERM)
            assert outer.wait(10) == 128 + signal.SIGTERM
        finally:
            outer.kill()


def handler_of_sigterm(outer: int) -> int:
    """The process below `outer`, as soon as it has a handler."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for child in Path(f"/proc/{outer}/task/{outer}/children").read_text().split():
            (caught,) = re.findall(r"SigCgt:\s*(\w+)", Path(f"/proc/{child}/status").read_text())
            if int(caught, 16) >> (signal.SIGTERM - 1) & 1:
                return int(child)
        time.sleep(0.005)
    raise AssertionError("no handler within a minute")
