"""The real process, started and ended the way a user or a crash does it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from tests.support.processes import ROOT, started

MODULE = "collector.commands.start"
READY = re.compile(r"^(gRPC|HTTP|page)\s+(\S+)", re.MULTILINE)


class Service:
    """`spanwise run` on free ports over a data folder that outlives it. Bounded in every wait."""

    def __init__(
        self,
        data: Path,
        *settings: str,
        workers: int = 1,
        command: str = "run",
        environment: Mapping[str, str] | None = None,
        says: frozenset[str] = frozenset({"gRPC", "HTTP", "page"}),
        module: str = MODULE,
        cwd: Path = ROOT,
        tree: Path = ROOT,
        safe_path: bool = False,
        inside: Sequence[str] = (),
    ) -> None:
        """Settings are `path=value`; `says` names the lines that make it ready: its roles serve no more than those.

        `tree`: the checkout whose packages it runs. `inside`: a command that becomes the service elsewhere.
        """
        self.data = data
        self._command = command
        self._environment = environment or {}
        self._says = says
        self._cwd = cwd
        self._tree = tree
        self._python = [*inside, sys.executable, *(["-P"] if safe_path else []), "-m", module]
        self._settings = [
            f"data_dir={data}",
            "receiver.grpc.port=0",
            "receiver.http.port=0",
            "admin.port=0",
            f"workers={workers}",
            "receiver.stop_delay=null",  # one sender, who knows the address: no one who must hear of the stop
            *settings,
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self.output = data.parent / f"{data.name}.log"
        self.grpc = self.http = self.admin = ""

    def start(self, timeout: float = 120.0) -> Self:
        """Return when it says that it is ready."""
        self.data.parent.mkdir(parents=True, exist_ok=True)
        offset = self.output.stat().st_size if self.output.exists() else 0
        arguments = [part for each in self._settings for part in ("--set", each)]
        with self.output.open("ab") as output:
            self._process = started(
                [self._command, *arguments],
                {"PYTHONUNBUFFERED": "1", **self._environment},
                (output, output),
                cwd=self._cwd,
                tree=self._tree,
                command=self._python,
            )
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            with self.output.open("rb") as output:
                output.seek(offset)
                text = output.read().decode(errors="replace")
            found = dict(READY.findall(text))
            if self._says <= found.keys():
                self.grpc, self.http = found.get("gRPC", ""), found.get("HTTP", "")
                self.admin = found["page"].rstrip("/")
                return self
            if self._process.poll() is not None:
                break
            time.sleep(0.05)
        raise AssertionError(f"not ready: {self.output.read_text(errors='replace')[-4000:]}")

    @property
    def is_running(self) -> bool:
        """Started and not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The main process."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """kill -9, workers included: as when the machine loses power. It may have ended by itself."""
        assert self._process is not None
        with suppress(ProcessLookupError):  # else it would hide why the start before has failed
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(10)

    def pause(self) -> None:
        """SIGSTOP, workers included: the machine hangs, or a virtual one is moved."""
        os.killpg(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        os.killpg(self.pid, signal.SIGCONT)

    def wait(self, timeout: float) -> int:
        """Until it has ended by itself; the exit code."""
        assert self._process is not None
        return self._process.wait(timeout)

    def stop(self, timeout: float = 30.0, by: signal.Signals = signal.SIGTERM) -> int:
        """A signal; the exit code."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(by)
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def __enter__(self) -> Self:
        """Started."""
        return self.start()

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        """Ended, one way or the other."""
        if self._process is not None and self._process.poll() is None:
            self.stop() if kind is None else self.kill()

    # -- what a user looks at -----------------------------------------------------------------------------------------

    def text(
        self, path: str, headers: Mapping[str, str] | None = None, timeout: float = 10.0
    ) -> str:
        """What the admin port answers.

        Raises:
            urllib.error.HTTPError: it refuses.
        """
        asked = urllib.request.Request(self.admin + path, headers=dict(headers or {}))
        with urllib.request.urlopen(asked, timeout=timeout) as answer:
            return answer.read().decode()

    def get(self, path: str, timeout: float = 10.0) -> Any:
        """JSON from the admin port."""
        return json.loads(self.text(path, timeout=timeout))

    def status(self, path: str, headers: Mapping[str, str] | None = None) -> int:
        """That of the admin port's answer."""
        try:
            self.text(path, headers)
        except urllib.error.HTTPError as refused:
            refused.close()
            return refused.code
        return 200

    def become_ready(self) -> Self:
        """Wait for the first worker: `start` returns once everything is bound."""
        self.wait_for("/readyz", lambda: self.get("/readyz"))
        return self

    def shown(self, trace_id: str, *, spans: int = 1, revision: int = 0) -> Any:
        """What the API says of a trace, once it is up to date: the index reads behind the other sinks."""

        def found() -> Any:
            trace_page = self.get(f"/api/v1/traces/{trace_id}")
            newest = {
                each["revision"] for each in trace_page["signals"] if each["scope"] == "trace"
            }
            return (
                trace_page
                if trace_page["trace"]["spans"] >= spans and newest == {revision}
                else None
            )

        return self.wait_for(f"trace {trace_id} at the API", found)

    def metrics(self) -> dict[str, float]:
        """Every sample of /metrics by its series."""
        return {
            line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
            for line in self.text("/metrics").splitlines()
            if line and not line.startswith("#")
        }

    def total(self, family: str, *labels: str) -> float:
        """The sum of the samples of a family, by how it begins, whose labels hold all these texts."""
        return sum(
            value
            for series, value in self.metrics().items()
            if series.startswith(family) and all(each in series for each in labels)
        )

    def signal_lines(self) -> list[str]:
        """Every whole line of the JSONL sink, rotated files included, oldest first.

        The last line of a file is left out while the sink still writes it.
        """
        files = sorted(self.data.glob("signals.jsonl*"), key=lambda each: each.stat().st_mtime)
        return [line for each in files for line in each.read_text().split("\n")[:-1]]

    def signals(self) -> list[dict[str, Any]]:
        """The same, decoded, without the feedback among them."""
        return [each for each in map(json.loads, self.signal_lines()) if "type" not in each]

    def scored_traces(self) -> set[str]:
        """The ids of the traces that have signals of their own."""
        return {each["trace_id"] for each in self.signals() if each["scope"] == "trace"}

    def wait_for(self, what: str, holds: Callable[[], Any], timeout: float = 60.0) -> Any:
        """Poll until `holds()` is truthy; its value."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            try:
                value = holds()
            except urllib.error.HTTPError as error:
                error.close()  # else it is reported as a leak of whichever test runs when it is collected
                value = None
            except OSError:
                value = None
            if value:
                return value
            time.sleep(0.1)
        tail = self.output.read_text(errors="replace")[-3000:]
        raise AssertionError(f"{what}: not within {timeout:g} s\n{tail}")

    def come_to(self, expected: Any, read: Callable[[], Any], timeout: float = 60.0) -> Any:
        """Poll until `read()` equals `expected`; the last value either way, for the test to compare."""
        deadline = time.monotonic() + timeout
        while (value := read()) != expected and time.monotonic() < deadline:
            time.sleep(0.2)
        return value


def children(pid: int) -> Sequence[int]:
    """Process ids of the direct children."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(each) for task in tasks for each in (task / "children").read_text().split()]


def is_judge(pid: int) -> bool:
    """Whether a child is the process of the judge."""
    return b"collector.judging.child" in Path(f"/proc/{pid}/cmdline").read_bytes()
