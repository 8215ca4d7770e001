"""What an attack costs the real process, and how others fare meanwhile: CPU seconds, bytes and waits."""

import gzip
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.asking import asked
from tests.support.otlp import length
from tests.support.processes import cpu_seconds, status
from tests.support.service import Service

PROTOBUF = {"content-type": "application/x-protobuf"}
PATIENCE = 60.0
"""Seconds after which a bystander gives up: far above every bound that a test sets."""


@dataclass(slots=True)
class Toll:
    """What became of the process and of the bystanders between two moments."""

    cpu: float = 0.0
    """CPU seconds of the main process."""
    peak: int = 0
    """The most resident bytes of the main process above what it held before."""
    longest: float = 0.0
    """Seconds that the bystander which waited longest waited."""
    served: int = 0
    unserved: list[str] = field(default_factory=list[str])

    def above(self, *, wait: float, cpu: float, memory: int) -> list[str]:
        """Every bound that does not hold, with its figure."""
        figures = (
            ("longest wait of a bystander, s", self.longest, wait),
            ("CPU of the main process, s", self.cpu, cpu),
            ("memory, MB", self.peak / 1e6, memory / 1e6),
            ("bystanders that were not served", len(self.unserved), 0),
        )
        return [f"{what}: {value:.1f} > {most:g}" for what, value, most in figures if value > most]


@contextmanager
def bystanders(
    service: Service,
    *,
    headers: Mapping[str, str] | None = None,
    senders: bool = True,
    before: int | None = None,
) -> Generator[Toll]:
    """While this lasts, an agent sends a trace again and again, and a kubelet asks for `/healthz`.

    `before` is what the process held before other attacks; None: what it holds now.
    """
    toll = Toll()
    over = threading.Event()
    before = resident(service.pid) if before is None else before
    _forget_peak(service.pid)
    used = cpu_seconds(service.pid)
    asking = [threading.Thread(target=_ask, args=(toll, over, lambda: f"{service.admin}/healthz"))]
    if senders:
        body = asked("bystander", "Where is my order?", service="bystander")
        sending = (toll, over, lambda: service.http, body, headers)
        asking.append(threading.Thread(target=_ask, args=sending))
    for each in asking:
        each.start()
    try:
        yield toll
    finally:
        over.set()
        for each in asking:
            each.join(2 * PATIENCE)
        if service.is_running:
            toll.cpu = cpu_seconds(service.pid) - used
            toll.peak = max(0, peak(service.pid) - before)


def _ask(
    toll: Toll,
    over: threading.Event,
    url: Callable[[], str],
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Again and again."""
    while not over.wait(0.05):
        began = time.monotonic()
        status, said = post(url(), body, headers)
        if 200 <= status < 300:
            toll.served += 1
        else:
            toll.unserved.append(f"HTTP {status} {said.decode(errors='replace')}")
        toll.longest = max(toll.longest, time.monotonic() - began)


def resident(pid: int) -> int:
    """Bytes resident now."""
    return status(pid, "VmRSS") << 10


def peak(pid: int) -> int:
    """The most bytes resident since `_forget_peak`."""
    return status(pid, "VmHWM") << 10


def unreclaimable(pid: int) -> int:
    """Bytes resident now that stand in no file: the system cannot take them back."""
    return status(pid, "RssAnon") << 10


def _forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def field_of(number: int, value: bytes) -> bytes:
    """One length-delimited field of a protobuf message."""
    return bytes((number << 3 | 2,)) + length(value) + value


def zipped(body: bytes) -> bytes:
    """Gzip, quickly."""
    return gzip.compress(body, 6, mtime=0)


def post(
    url: str,
    body: bytes | None,
    headers: Mapping[str, str] | None = None,
    timeout: float = PATIENCE,
) -> tuple[int, bytes]:
    """Status and body of the answer, whatever it is; status 0 when there is none. Without a body it asks by GET."""
    request = urllib.request.Request(url, body, {**PROTOBUF, **(headers or {})})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()
    except OSError as error:
        return 0, repr(error).encode()
