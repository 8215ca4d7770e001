"""One measured run: a server started, loaded, drained and ended; CPU seconds of its process tree per million spans."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.load import Request, requests
from tests.support.service import ROOT, Service, children

TICK = os.sysconf("SC_CLK_TCK")
CACHE = ROOT / ".cache" / "bench"
TRACES = 300
MEMORY_SHARE = "log.disk.max_size=12GiB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one run used, start-up apart."""

    label: str
    spans: int
    cpu: float
    p50_ms: float
    p99_ms: float
    refused: int

    @property
    def per_million(self) -> float:
        """CPU seconds per million spans."""
        return self.cpu / self.spans * 1e6


def load_file(batch: int) -> Path:
    """The prepared requests for a batch size, made once."""
    file = CACHE / f"b{batch}-{TRACES}.pickle"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pickle.dumps(requests(TRACES, batch)))
    return file


def spans_in(file: Path) -> int:
    """Spans of one pass."""
    made: list[Request] = pickle.loads(file.read_bytes())
    return sum(each.spans for each in made)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, those it has reaped, and its living children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    own = sum(map(int, fields[11:15])) / TICK
    return own + sum(cpu_seconds(child) for child in children(pid))


def anonymous_bytes(pid: int) -> int:
    """RssAnon of one process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no RssAnon")


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
        before = cpu_seconds(pid)
        sent = send(target, file, *options, passes=passes)
        return _run("transport", sent, cpu_seconds(pid) - before)


def run_service(
    label: str, file: Path, *settings: str, options: tuple[str, ...] = (), passes: int = 1
) -> Run:
    """Spanwise with these settings: from the first request until nothing is left to do."""
    folder = Path(tempfile.mkdtemp(prefix="spanwise-bench-", dir=CACHE))
    try:
        with Service(folder / "data", MEMORY_SHARE, "windows.trace.root_grace=1s", *settings) as it:
            send(it.grpc, file, "--requests", "20", base=9000)
            settled(it)
            before = cpu_seconds(it.pid)
            sent = send(it.grpc, file, *options, passes=passes)
            settled(it)
            return _run(label, sent, cpu_seconds(it.pid) - before)
    finally:
        shutil.rmtree(folder)


def _run(label: str, sent: dict[str, Any], cpu: float) -> Run:
    return Run(
        label=label,
        spans=sent["spans"],
        cpu=cpu,
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
