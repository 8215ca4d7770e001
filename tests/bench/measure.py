"""One measured run: a server started, loaded, drained and ended; CPU seconds of its process tree per million spans.

And the table that shows such figures.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.load import Request, requests
from tests.support.processes import cpu_seconds, ran
from tests.support.service import ROOT, Service, children

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

    spans: int
    wire: int
    """Bytes of the requests that were acknowledged, before compression."""
    used: Usage

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


def tree_seconds(pid: int) -> float:
    """User and system time of a process, those it has reaped, and its living children."""
    own = cpu_seconds(pid, reaped=True)
    return own + sum(tree_seconds(child) for child in children(pid))


def usage(pid: int) -> Usage:
    """What a process and those that it started have used so far."""
    counted = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return Usage(tree_seconds(pid), cpu_seconds(pid), int(counted["write_bytes"]))


def send(target: str, file: Path, *options: str, passes: int = 1, base: int = 1) -> dict[str, Any]:
    """Run the client."""
    command = [sys.executable, "-m", "tests.bench.client", target, str(file)]
    command += ["--passes", str(passes), "--base", str(base), *options]
    done = ran(*command, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@contextlib.contextmanager
def transport() -> Generator[tuple[int, str]]:
    """The transport-only server: its pid and address."""
    command = [sys.executable, "-m", "tests.bench.transport"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.pid, f"127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def run_transport(file: Path, *options: str, passes: int = 1) -> Run:
    """The denominator."""
    with transport() as (pid, target):
        send(target, file, "--requests", "20", base=9000)
        before = usage(pid)
        sent = send(target, file, *options, passes=passes)
        return Run(spans=sent["spans"], wire=sent["bytes"], used=usage(pid).since(before))


def run_service(
    file: Path, *settings: str, passes: int, options: tuple[str, ...] = (), **how: Any
) -> Run:
    """Spanwise with these settings: from the first request until nothing is left to do. `how`: see `Service`."""
    with served(MEMORY_SHARE, "windows.trace.root_grace=1s", *settings, **how) as it:
        send(it.grpc, file, "--requests", "20", base=9000)
        settled(it)
        before = usage(it.pid)
        sent = send(it.grpc, file, *options, passes=passes)
        settled(it)
        return Run(spans=sent["spans"], wire=sent["bytes"], used=usage(it.pid).since(before))


@contextlib.contextmanager
def served(*settings: str, **how: Any) -> Generator[Service]:
    """A service over a folder of its own, which imports what it needs itself; `how`: see `Service`."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="spanwise-bench-", dir=CACHE) as folder,
        Service(Path(folder) / "data", *settings, **how) as it,
    ):
        yield it


def settled(service: Service) -> None:
    """No trace open that will close by its root, nothing undelivered, and the CPU quiet for a second."""
    deadline = time.monotonic() + 120
    quiet = 0
    while quiet < 2 and time.monotonic() < deadline:
        before = tree_seconds(service.pid)
        time.sleep(0.6)
        quiet = quiet + 1 if tree_seconds(service.pid) - before < 0.06 else 0


# --- the table that `make bench` prints: what was measured, its mark, whether it held, and the machine's load ---------

_WIDE = 52


def heading(title: str) -> None:
    """A group of rows."""
    print(f"\n{title:<{_WIDE}} {'measured':>18}  {'mark':>9}  {'':>6}  load", flush=True)


def row(what: str, measured: str, mark: str = "", *, held: bool | None = None) -> None:
    """One line; `held` None: there is no mark."""
    verdict = "" if held is None else "held" if held else "MISSED"
    load = os.getloadavg()[0]
    print(f"{what:<{_WIDE}} {measured:>18}  {mark:>9}  {verdict:<6}  {load:4.1f}", flush=True)


def at_most(what: str, value: float, mark: float | None, unit: str = "") -> None:
    """A figure that should not be above its mark; without a mark it is printed for itself."""
    if mark is None:
        row(what, f"{value:.2f}{unit}")
    else:
        row(what, f"{value:.2f}{unit}", f"<= {mark:g}{unit}", held=value <= mark)
