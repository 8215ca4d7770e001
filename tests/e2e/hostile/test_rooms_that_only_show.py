"""The index, the sinks, the metrics, the judge and the forwarder may fail: what takes in and keeps goes on.

Their disk is full, fails or turns read-only, or an error comes that they do not foresee. They come back and catch up. A
disk that LMDB holds open cannot be remounted read-only: such errors are planted below it.
"""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.asking import asked, trace_id
from tests.support.faults import KINDS, VARIABLE, switch_on
from tests.support.openai_server import OpenAiServer
from tests.support.otlp_server import Backend, LogsServer, grpc_backend, grpc_server
from tests.support.processes import missing
from tests.support.sender import send
from tests.support.service import Service, children, is_judge

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(200)]

SOON = "windows.trace.root_grace=100ms"
ROOMS = {
    "index": "api",
    "jsonl": "sink.jsonl",
    "otlp": "sink.otlp",
    "metrics": "metrics",
    "forward": "forward",
    "judge": "judge",
}
"""By the place of a fault, the room that it fails."""


def shown_by(service: Service) -> list[dict[str, Any]]:
    """Signals in the JSONL sink, whose last line may be torn while its disk is full."""
    return [json.loads(each) for each in service.signal_lines() if each.endswith("}")]


def said_twice(output: str) -> list[str]:
    """Rooms whose failures were named more than once: not at every try."""
    named = re.findall(r"(?:Room|Sink) `([\w.]+)` fail|The (judge) is hindered", output)
    return [each for each, times in Counter(map("".join, named)).items() if times > 1]


@pytest.mark.parametrize(
    "kind", ["full", "bug", *(pytest.param(each, marks=pytest.mark.slow) for each in KINDS[1:3])]
)
async def test_every_room_fails_and_comes_back(tmp_path: Path, kind: str) -> None:
    """All of them at once; then every room has everything that was sent. Traces are taken all the while."""
    switch = tmp_path / "fault"

    def act(judge: OpenAiServer, backend: Backend, logs: LogsServer) -> None:
        with Service(
            tmp_path / "data",
            *(SOON, "embedder.kind=none", *judge.settings),
            *(f"forward.endpoint={backend.endpoint}", f"sinks.otlp.endpoint={logs.endpoint}"),
            module="tests.support.faults",
            environment={VARIABLE: str(switch)},
        ) as service:

            def fail(places: Collection[str], number: int) -> None:
                """Let these places fail, send a trace, and wait until each of their rooms has failed."""
                switch_on(switch, places, kind)
                send(service.grpc, asked("s", f"Where is {number}?", number=number))
                rooms = {ROOMS[each] for each in places}
                unfailed = lambda: {each for each in rooms if not failures(each)}  # noqa: E731
                assert service.come_to(set(), unfailed, 40) == set(), kind

            def failures(room: str) -> float:
                return service.total("spanwise_room_failures_total", f'room="{room}')

            def seen(number: int) -> list[bool]:
                """By JSONL sink, judge, index, OTLP sink, forwarder."""
                ident = trace_id("s", number)
                of_trace = [each for each in shown_by(service) if each["trace_id"] == ident]
                judged = [each["outcome"] for each in of_trace if each["method"] == "llm_judge"]
                is_shown = service.status(f"/api/v1/traces/{ident}") == 200
                return [
                    bool(of_trace),
                    "scored" in judged,
                    is_shown and bool(service.get(f"/api/v1/traces/{ident}")["signals"]),
                    any(record.trace_id.hex() == ident for record in logs.records()),
                    any(bytes.fromhex(ident) in request for request in backend.requests),
                ]

            for pid in filter(is_judge, children(service.pid)):
                os.kill(pid, signal.SIGKILL)
            fail(ROOMS.keys() - {"metrics"}, 0)
            # Metrics count final outcomes, so they fail on the verdict of a judge that works again.
            fail({"metrics"}, 1)
            switch.unlink()
            send(service.grpc, asked("s", "Where is 2?", number=2))
            for number in range(3):
                assert service.come_to([True] * 5, partial(seen, number)) == [True] * 5, number
            assert said_twice(service.output.read_text()) == []
            assert service.metrics()["spanwise_event_loop_lag_seconds"] < 5
            assert service.stop() == 0

    async with grpc_backend() as backend, grpc_server() as logs:
        with OpenAiServer() as judge:
            await asyncio.to_thread(act, judge, backend, logs)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A folder that is a disk of 6 MB of its own."""
    folder = tmp_path / "data"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)]
    is_possible = os.geteuid() == 0 and shutil.which("mount") is not None
    if not is_possible or subprocess.run(command, capture_output=True, check=False).returncode:
        missing("TMPFS", "A FULL DISK IS NOT TESTED: a tmpfs cannot be mounted here: it needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_the_disk_of_everything_fills_up(tmp_path: Path, disk: Path) -> None:
    """Of log, index and signals: senders are refused, nothing that was acknowledged is lost, it goes on."""
    service = Service(disk, SOON)
    service.output = tmp_path / "output.log"
    with service:
        acknowledged: list[int] = []
        for number in range(400):
            try:
                send(service.grpc, asked(f"s{number}", "Where is my order? " * 600))
            except Exception:  # noqa: BLE001 - refused: that is what a full disk should come to
                break
            acknowledged.append(number)
            assert service.is_running
        service.wait_for("it answers", lambda: service.get("/healthz") is not None, 10)
        subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)

        wanted = {trace_id(f"s{number}") for number in acknowledged}
        scored = lambda: {each["trace_id"] for each in shown_by(service)}  # noqa: E731
        service.wait_for("all is scored", lambda: wanted <= scored(), 40)
        assert "Traceback" not in service.output.read_text()
        assert service.stop() == 0
