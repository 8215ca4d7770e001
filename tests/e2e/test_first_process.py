"""A signal to the first process of a container, early in its start: the kernel ignores it where there is no handler."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.service import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]
ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
OWN = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc")
(ENTRY,) = re.findall(r"^ENTRYPOINT (.+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)


def is_blocked(status: str) -> bool:
    """Before Python runs. `unshare` blocks it too, until it becomes what it starts."""
    return "Name:\tunshare" not in status and has_all("SigBlk", status)


def is_handled(status: str) -> bool:
    """While Python imports."""
    return has_all("SigCgt", status)


@pytest.mark.parametrize("number", ENDS)
@pytest.mark.parametrize("when", [is_blocked, is_handled])
def test_it_ends_the_first_process(
    tmp_path: Path, when: Callable[[str], bool], number: signal.Signals
) -> None:
    *entry, command = json.loads(ENTRY)
    assert command == "spanwise"
    run = (sys.executable, "-m", "collector.commands.start", "run", "--set", f"data_dir={tmp_path}")
    with subprocess.Popen([*OWN, *entry, *run]) as outer:
        try:
            os.kill(first_process(outer.pid, when), number)
            assert outer.wait(10) == 128 + number
        finally:
            outer.kill()


def has_all(mask: str, status: str) -> bool:
    (bits,) = re.findall(rf"{mask}:\s*(\w+)", status)
    return all(int(bits, 16) >> (each - 1) & 1 for each in ENDS)


def first_process(outer: int, when: Callable[[str], bool]) -> int:
    """The process below `outer`, as soon as its status is such."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for child in Path(f"/proc/{outer}/task/{outer}/children").read_text().split():
            if when(Path(f"/proc/{child}/status").read_text()):
                return int(child)
        time.sleep(0.001)
    raise AssertionError(f"not within a minute: {when.__name__}")
