"""What a service takes while nothing is sent to it: CPU, wake-ups and memory; and what its main process never imports.

`megabytes` are of RssAnon, what the system cannot take back.
"""

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collector.base.heap import QUIET
from tests.bench.measure import MEMORY_SHARE, load_file, send, served, settled, usage
from tests.support.processes import ran, status
from tests.support.service import Service, children

STARTED = 6.0
"""Seconds until what a start leaves behind is done."""
SECONDS = 20.0
"""Of the look: CPU is counted in hundredths of a second."""
SETTINGS = (MEMORY_SHARE, "windows.trace.root_grace=1s")
HEAVY = ("aiokafka", "litellm", "numpy", "scipy", "sklearn", "wordllama")
_IMPORTED = """
import json, sys
from collector.service.app import App
from collector.commands.run import run
from collector.config.tree import Config
App(Config())
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """A service with every default, which has not been sent anything."""

    cpu: float
    """Of all its processes, in percent of one core."""
    resident: float
    """VmRSS of all its processes, in MiB: pages that they share count for each."""
    wakeups: float
    """Of its event loop's thread, a second."""


def at_rest(seconds: float = SECONDS, **how: Any) -> Rest:
    """Look at a service for so long; `how`: see `Service`."""
    with served(**how) as it:
        time.sleep(STARTED)
        before, woke = usage(it.pid), status(it.pid, "voluntary_ctxt_switches")
        began = time.monotonic()
        time.sleep(seconds)
        used, passed = usage(it.pid).since(before), time.monotonic() - began
        return Rest(
            cpu=100 * used.cpu / passed,
            resident=sum(status(each, "VmRSS") for each in (it.pid, *children(it.pid))) / 1024,
            wakeups=(status(it.pid, "voluntary_ctxt_switches") - woke) / passed,
        )


def main_megabytes() -> float:
    """Of the main process of a service with every default, some seconds after its start."""
    with served() as it:
        time.sleep(2)
        maps = Path(f"/proc/{it.pid}/maps").read_text()
        assert not [name for name in HEAVY if f"/{name}" in maps]
        return status(it.pid, "RssAnon") / 1024


def all_megabytes(service: Service) -> float:
    """Of all processes of a service."""
    return sum(status(each, "RssAnon") for each in (service.pid, *children(service.pid))) / 1024


def idle_megabytes() -> float:
    """Of all processes some seconds after 30,000 spans, as fast as they go, when every session has closed."""
    with served(*SETTINGS, "windows.session.idle=5s") as it:
        it.become_ready()
        send(it.grpc, load_file(64), passes=5)
        settled(it)

        def has_closed() -> bool:
            found = it.metrics()
            return not found["spanwise_traces_active"] + found["spanwise_sessions_active"]

        it.wait_for("all sessions are closed", has_closed)
        time.sleep(2 * QUIET)
        return all_megabytes(it)


def heavy_imports() -> list[str]:
    """Which of the heavy libraries a main process with every default has imported."""
    done = ran(sys.executable, "-c", _IMPORTED)
    assert done.returncode == 0, done.stderr
    return sorted(set(json.loads(done.stdout)) & set(HEAVY))
