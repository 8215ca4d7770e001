"""The index, the sinks, the metrics, the judge and the forwarder may fail: what takes in and keeps goes on.

Their disk is full, fails or turns read-only, or an error comes that they do not foresee. They come back and catch up. A
disk that LMDB holds open cannot be remounted read-only: such errors are planted below it.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
import urllib.error
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.asking import asked, trace_id
from tests.support.faults import KINDS, VARIABLE, switch_on
from tests.support.kafka.topics import create_topic, read_topic
from tests.support.openai_server import OpenAiServer
from tests.support.otlp_backend import Backend, grpc_backend
from tests.support.otlp_logs import LogsServer, grpc_server
from tests.support.required import missing
from tests.support.sender import send
from tests.support.service import Service, children, is_judge

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(200)]

SOON = "windows.trace.root_grace=100ms"
FAILURES = "spanwise_room_failures_total"
ROOMS = {
    "index": "api",
    "jsonl": "sink.jsonl",
    "otlp": "sink.otlp",
    "metrics": "metrics",
    "forward": "forward",
    "judge": "judge",
}
"""By the place of a fault, the room that it fails."""


def failures(service: Service, room: str = "") -> float:
    """Of one room, or of all, for all reasons."""
    return service.total(FAILURES, f'room="{room}')


def scored(service: Service) -> set[str]:
    """Trace ids in the JSONL sink, whose last line may be torn while its disk is full."""
    return {each["trace_id"] for each in shown_by(service) if each["scope"] == "trace"}


def shown_by(service: Service) -> list[dict[str, Any]]:
    return [json.loads(each) for each in service.signal_lines() if each.endswith("}")]


def is_shown(service: Service, number: int) -> bool:
    try:
        return bool(service.get(f"/api/v1/traces/{trace_id('s', number)}")["signals"])
    except urllib.error.HTTPError as error:
        error.close()
        return False


def faulty(folder: Path, switch: Path, *settings: str) -> Service:
    """A service whose places fail as the switch says."""
    return Service(
        folder,
        SOON,
        *settings,
        module="tests.support.faults",
        environment={VARIABLE: str(switch)},
    )


def kill_judge(service: Service) -> None:
    for pid in children(service.pid):
        if is_judge(pid):
            os.kill(pid, 9)


OUTLETS = 5
SAME = ("io", "read-only")
"""Kinds that rooms treat as they treat a full disk."""


def said_twice(output: str) -> list[str]:
    """Rooms whose failures were named more than once: not at every try."""
    named = re.findall(r"(?:Room|Sink) `([\w.]+)` fail|The (judge) is hindered", output)
    return [each for each, times in Counter(map("".join, named)).items() if times > 1]


class Scene:
    """A service with every outlet, and what each outlet has of a trace."""

    def __init__(
        self, folder: Path, owned: AsyncExitStack, backend: Backend, logs: LogsServer
    ) -> None:
        server = owned.enter_context(OpenAiServer())
        self.switch = folder / "fault"
        self._backend, self._logs = backend, logs
        self.service = faulty(
            folder / "data",
            self.switch,
            f"forward.endpoint={backend.endpoint}",
            f"sinks.otlp.endpoint={logs.endpoint}",
            *server.settings,
            "embedder.kind=none",
        )

    def send(self, number: int) -> None:
        send(self.service.grpc, asked("s", f"Where is {number}?", number=number))

    def seen(self, number: int) -> list[bool]:
        """JSONL sink, judge, index, OTLP sink, forwarder."""
        ident = trace_id("s", number)
        signals = [each for each in shown_by(self.service) if each["trace_id"] == ident]
        return [
            bool(signals),
            any(each["method"] == "llm_judge" and each["outcome"] == "scored" for each in signals),
            is_shown(self.service, number),
            any(record.trace_id.hex() == ident for record in self._logs.records()),
            any(bytes.fromhex(ident) in request for request in self._backend.requests),
        ]

    def fail(self, places: Iterable[str], kind: str, number: int, before: dict[str, float]) -> None:
        """Let these places fail, send a trace, and wait until each of their rooms has failed."""
        switch_on(self.switch, places, kind)
        self.send(number)
        rooms = {ROOMS[each] for each in places}

        def unfailed() -> set[str]:
            return {each for each in rooms if failures(self.service, each) <= before[each]}

        assert self.service.come_to(set(), unfailed, 40) == set(), kind

    def round(self, first: int, kind: str) -> None:
        """Every room fails, then every room has everything that was sent; traces are taken all the while."""
        before = {room: failures(self.service, room) for room in ROOMS.values()}
        kill_judge(self.service)
        self.fail(ROOMS.keys() - {"metrics"}, kind, first, before)
        # Metrics count final outcomes, so they fail on the verdict of a judge that works again.
        self.fail({"metrics"}, kind, first + 1, before)
        self.switch.unlink()
        self.send(first + 2)
        for number in (first, first + 1):
            wanted = [True] * OUTLETS
            assert self.service.come_to(wanted, partial(self.seen, number), 60) == wanted, kind
        wanted = [True] * OUTLETS
        assert self.service.come_to(wanted, lambda: self.seen(first + 2), 60) == wanted, kind


@pytest.mark.parametrize(
    "kind", ["full", "bug", *(pytest.param(each, marks=pytest.mark.slow) for each in SAME)]
)
async def test_every_room_fails_and_comes_back(tmp_path: Path, kind: str) -> None:
    """All of them at once."""
    async with AsyncExitStack() as owned:
        backend = await owned.enter_async_context(grpc_backend())
        logs = await owned.enter_async_context(grpc_server())
        scene = Scene(tmp_path, owned, backend, logs)

        def act() -> None:
            with scene.service as service:
                scene.round(0, kind)
                assert said_twice(service.output.read_text()) == []
                assert service.metrics()["spanwise_event_loop_lag_seconds"] < 5
                assert service.stop() == 0

        await asyncio.to_thread(act)


@pytest.mark.kafka
async def test_the_kafka_sink_fails_in_every_way_and_comes_back(kafka: str, tmp_path: Path) -> None:
    switch, topic = tmp_path / "fault", f"faults-{uuid.uuid4().hex}"
    await create_topic(kafka, topic, partitions=1)
    settings = (f"sinks.kafka.bootstrap_servers={kafka}", f"sinks.kafka.topic={topic}")
    service = faulty(tmp_path / "data", switch, *settings, "embedder.kind=none")
    acked = 'spanwise_signals_total{result="acked",sink="kafka"}'

    def has_all() -> bool:
        return service.metrics().get(acked) == len(service.signal_lines())

    def act() -> None:
        with service:
            for number, kind in enumerate(KINDS):
                before = failures(service, "sink.kafka")
                switch_on(switch, ["kafka"], kind)
                send(service.grpc, asked("s", "Where?", number=number))
                failed = partial(_has_failed_since, service, "sink.kafka", before)
                service.wait_for(f"a failure ({kind})", failed, 30)
                service.wait_for("it is shown", partial(is_shown, service, number), 30)
                switch.unlink()
            service.wait_for("the sink has all", has_all, 60)
            assert service.stop() == 0

    await asyncio.to_thread(act)
    found = {json.loads(each.value or b"")["trace_id"] for each in await read_topic(kafka, topic)}
    assert {trace_id("s", number) for number in range(len(KINDS))} <= found


def _has_failed_since(service: Service, room: str, before: float) -> bool:
    return failures(service, room) > before


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", ["index", "jsonl", "metrics", "forward"])
def test_a_room_that_fails_alone_ends_nothing_and_comes_back(
    tmp_path: Path, place: str, kind: str
) -> None:
    switch = tmp_path / "fault"
    with faulty(tmp_path / "data", switch, 'forward={"endpoint": "127.0.0.1:9"}') as service:
        switch_on(switch, [place], kind)
        for number in range(3):
            send(service.grpc, asked("s", "Where?", number=number))
        service.wait_for("the failure is counted", lambda: failures(service, ROOMS[place]) > 0, 15)
        if place != "jsonl":
            service.wait_for("traces are scored", lambda: trace_id("s", 2) in scored(service), 15)
        send(service.grpc, asked("s", "Where?", number=3))
        switch.unlink()

        wanted = {trace_id("s", number) for number in range(4)}
        service.wait_for("every trace is scored", lambda: wanted <= scored(service), 20)
        service.wait_for("every trace is shown", lambda: is_shown(service, 3), 20)
        assert service.stop() == 0


# --- a disk that is really full -----------------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str, str], Path]]:
    """Makes a folder a disk of its own, of this size."""
    mounted: list[Path] = []

    def make(name: str, size: str) -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        if os.geteuid() != 0 or not _mount(folder, f"size={size}"):
            why = "A FULL DISK IS NOT TESTED: a tmpfs cannot be mounted here, which needs root"
            missing("TMPFS", why)
        mounted.append(folder)
        return folder

    yield make
    for folder in reversed(mounted):
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _mount(folder: Path, options: str) -> bool:
    if shutil.which("mount") is None:
        return False
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)


def judged(service: Service) -> set[str]:
    """Trace ids with a scored verdict."""
    return {
        each["trace_id"]
        for each in shown_by(service)
        if each["method"] == "llm_judge" and each["outcome"] == "scored"
    }


def test_the_disks_of_index_and_judge_fill_up(
    tmp_path: Path, disk: Callable[[str, str], Path]
) -> None:
    """Everything is scored and judged all the while: an answer that cannot be kept is used all the same."""
    index, cache = disk("data/index", "256k"), disk("data/judge-cache", "36k")
    with OpenAiServer() as server:
        settings = (SOON, "embedder.kind=none", *server.settings)
        with Service(tmp_path / "data", *settings) as service:
            count = 30
            for number in range(count):
                question = f"Where is {number}? " * 400
                send(service.grpc, asked("s", question, number=number))

            wanted = {trace_id("s", number) for number in range(count)}
            service.wait_for("all is judged", lambda: wanted <= judged(service), 60)
            for room in ("api", "judge"):
                service.wait_for("it is counted", lambda room=room: failures(service, room) > 0, 10)
            assert service.output.read_text().count("The judge is hindered") == 1
            remount(index, "size=64m")
            remount(cache, "size=64m")
            service.wait_for("all is shown", lambda: is_shown(service, count - 1), 30)
            assert "Traceback" not in service.output.read_text()
            assert service.stop() == 0


def test_the_disk_of_everything_fills_up(tmp_path: Path, disk: Callable[[str, str], Path]) -> None:
    """6 MB for log, index and signals: senders are refused, nothing that was acknowledged is lost, it goes on."""
    data = disk("data", "6m")
    service = Service(data, SOON)
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
        remount(data, "size=200m")

        wanted = {trace_id(f"s{number}") for number in acknowledged}
        service.wait_for("all is scored", lambda: wanted <= scored(service), 40)
        assert "Traceback" not in service.output.read_text()
        assert service.stop() == 0
