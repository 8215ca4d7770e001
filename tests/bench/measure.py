"""One measured run: a server started, loaded, drained and ended; CPU seconds of its process tree per million spans."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.load import Request, requests
from tests.support.service import ROOT, Service, children

TICK = os.sysconf("SC_CLK_TCK")
CACHE = ROOT / ".cache" / "bench"
TRACES = 300
MEMORY_SHARE = "log.disk.max_size=12GiB"


class Usage(NamedTuple):
    """What a process tree has used since it began."""

    cpu: float
    """User and system seconds."""
    main: float
    """The same of the tree's first process alone."""
    written: int
    """Bytes that the first process caused to be written to the disk: no other one writes."""

    def since(self, before: Usage) -> Usage:
        """What was used after `before`."""
        return Usage(self.cpu - before.cpu, self.main - before.main, self.written - before.written)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one run used, start-up apart."""

    label: str
    spans: int
    wire: int
    """Bytes of the requests that were acknowledged, before compression."""
    used: Usage
    p50_ms: float
    p99_ms: float
    refused: int

    @property
    def per_million(self) -> float:
        """CPU seconds per million spans."""
        return self.used.cpu / self.spans * 1e6

    @property
    def main_per_million(self) -> float:
        """The same of the main process alone."""
        return self.used.main / self.spans * 1e6

    @property
    def written_per_wire(self) -> float:
        """Bytes that were given to the disk for each byte that came."""
        return self.used.written / self.wire


def load_file(batch: int, *, matching: bool = True) -> Path:
    """The prepared requests for a batch size, made once.

    `matching`: tools' spans carry the ids that models asked with.
    """
    name = f"b{batch}-{TRACES}{'' if matching else '-ids-differ'}.pickle"
    return prepared(name, lambda: requests(TRACES, batch, matching=matching))


def prepared(name: str, make: Callable[[], list[Request]]) -> Path:
    """The file of this name in the cache, made if it is missing: whole at any time, whoever else makes it."""
    file = CACHE / name
    if not file.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        content = pickle.dumps(make())
        with tempfile.NamedTemporaryFile(dir=CACHE, prefix=f"{name}-", delete=False) as made:
            made.write(content)
        Path(made.name).replace(file)
    return file


def spans_in(file: Path) -> int:
    """Spans of one pass."""
    made: list[Request] = pickle.loads(file.read_bytes())
    return sum(each.spans for each in made)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, those it has reaped, and its living children."""
    own = sum(_times(pid)) / TICK
    return own + sum(cpu_seconds(child) for child in children(pid))


def usage(pid: int) -> Usage:
    """What a process and those that it started have used so far."""
    user, system, *_ = _times(pid)
    return Usage(cpu_seconds(pid), (user + system) / TICK, written_bytes(pid))


def written_bytes(pid: int) -> int:
    """Bytes that a process caused to be written to the disk, at the time when it dirtied their pages."""
    for line in Path(f"/proc/{pid}/io").read_text().splitlines():
        if line.startswith("write_bytes:"):
            return int(line.split()[1])
    raise AssertionError("no write_bytes")


def _times(pid: int) -> list[int]:
    """User and system ticks of a process, then of the children that it has reaped."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return [int(each) for each in fields[11:15]]


def anonymous_bytes(pid: int) -> int:
    """RssAnon of one process."""
    return status(pid, "RssAnon") * 1024


def status(pid: int, name: str) -> int:
    """A number that the system keeps of a process, as `/proc/PID/status` names it; memory in KiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise AssertionError(f"no {name}")


def send(target: str, file: Path, *options: str, passes: int = 1, base: int = 1) -> dict[str, Any]:
    """Run the client."""
    command = [sys.executable, "-m", "tests.bench.client", target, str(file)]
    command += ["--passes", str(passes), "--base", str(base), *options]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@contextlib.contextmanager
def transport() -> Generator[tuple[int, str]]:
    """The transport-only server: its pid and address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "tests.bench.transport", str(port)]
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    try:
        _wait_for_port(port)
        yield process.pid, f"127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(10)


def run_transport(file: Path, *options: str, passes: int = 1) -> Run:
    """The denominator."""
    with transport() as (pid, target):
        send(target, file, "--requests", "20", base=9000)
        before = usage(pid)
        sent = send(target, file, *options, passes=passes)
        return _run("transport", sent, usage(pid).since(before))


def run_service(
    label: str,
    file: Path,
    *settings: str,
    options: tuple[str, ...] = (),
    passes: int = 1,
    **how: Any,
) -> Run:
    """Spanwise with these settings: from the first request until nothing is left to do. `how`: see `Service`."""
    with served(MEMORY_SHARE, "windows.trace.root_grace=1s", *settings, **how) as it:
        send(it.grpc, file, "--requests", "20", base=9000)
        settled(it)
        before = usage(it.pid)
        sent = send(it.grpc, file, *options, passes=passes)
        settled(it)
        return _run(label, sent, usage(it.pid).since(before))


@contextlib.contextmanager
def served(*settings: str, **how: Any) -> Generator[Service]:
    """A service over a folder of its own, which imports what it needs itself; `how`: see `Service`."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="spanwise-bench-", dir=CACHE) as folder,
        Service(Path(folder) / "data", *settings, measured=True, **how) as it,
    ):
        yield it


def _run(label: str, sent: dict[str, Any], used: Usage) -> Run:
    return Run(
        label=label,
        spans=sent["spans"],
        wire=sent["bytes"],
        used=used,
        p50_ms=sent["p50_ms"],
        p99_ms=sent["p99_ms"],
        refused=sent["refused"],
    )


def settled(service: Service) -> None:
    """No trace open that will close by its root, nothing undelivered, and the CPU quiet for a second."""
    deadline = time.monotonic() + 120
    quiet = 0
    while quiet < 2 and time.monotonic() < deadline:
        before = cpu_seconds(service.pid)
        time.sleep(0.6)
        quiet = quiet + 1 if cpu_seconds(service.pid) - before < 0.06 else 0


def _wait_for_port(port: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
        time.sleep(0.05)
    raise AssertionError("the transport server did not start")
