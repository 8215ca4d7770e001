"""The index, the sinks, the metrics and the forwarder may fail: what takes in and keeps goes on, and they come back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.asking import asked, trace_id
from tests.support.faults import VARIABLE
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

SOON = "windows.trace.root_grace=100ms"
FAILURES = "spanwise_room_failures_total"


def failures(service: Service) -> float:
    """Of all rooms and reasons."""
    return sum(value for key, value in service.metrics().items() if key.startswith(FAILURES))


def scored(service: Service) -> set[str]:
    """Trace ids in the JSONL sink, whose last line may be torn while its disk is full."""
    whole = [each for each in service.signal_lines() if each.endswith("}")]
    told = [json.loads(each) for each in whole]
    return {each["trace_id"] for each in told if each["scope"] == "trace"}


def is_shown(service: Service, number: int) -> bool:
    found = service.get(f"/api/v1/traces/{trace_id('s', number)}")
    return bool(found["signals"])


@pytest.mark.parametrize(
    ("fault", "keeps_scoring"),
    [
        ("index lmdb", True),
        ("index full", True),
        ("index read-only", True),
        ("index bug", True),
        ("jsonl full", False),
        ("jsonl io", False),
        ("jsonl bug", False),
        ("metrics bug", True),
        ("forward bug", True),
    ],
)
def test_a_room_that_fails_ends_nothing_and_comes_back(
    tmp_path: Path, fault: str, *, keeps_scoring: bool
) -> None:
    switch = tmp_path / "fault"
    service = Service(
        tmp_path / "data",
        SOON,
        'forward={"endpoint": "127.0.0.1:9"}',
        module="tests.support.faults",
        environment={VARIABLE: str(switch)},
    )
    with service:
        switch.write_text(fault)
        for number in range(3):
            send(service.grpc, asked("s", "Where?", number=number))
        service.wait_for("the failure is counted", lambda: failures(service) > 0, timeout=15)
        if keeps_scoring:
            service.wait_for("traces are scored", lambda: trace_id("s", 2) in scored(service), 15)
        send(service.grpc, asked("s", "Where?", number=3))
        switch.unlink()

        wanted = {trace_id("s", number) for number in range(4)}
        service.wait_for("every trace is scored", lambda: wanted <= scored(service), 20)
        service.wait_for("every trace is shown", lambda: is_shown(service, 3), 20)
        assert service.metrics()["spanwise_event_loop_lag_seconds"] < 5
        assert service.stop() == 0


def test_the_failure_is_said_once_not_at_every_try(tmp_path: Path) -> None:
    switch = tmp_path / "fault"
    with Service(
        tmp_path / "data",
        SOON,
        module="tests.support.faults",
        environment={VARIABLE: str(switch)},
    ) as service:
        switch.write_text("index lmdb")
        for number in range(3):
            send(service.grpc, asked("s", "Where?", number=number))
        service.wait_for("it was tried again", lambda: failures(service) >= 3, timeout=20)

        complaints = service.output.read_text().count("No space left on device")

    assert complaints == 1


# --- a disk that is really full -----------------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str, str], Path]]:
    """Makes a folder a disk of its own, of this size."""
    mounted: list[Path] = []

    def make(name: str, size: str) -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        if os.geteuid() != 0 or not _mount(folder, f"size={size}"):
            pytest.skip("NO FULL DISK, NOT TESTED: mounting a tmpfs needs root")
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


def test_the_disk_of_the_index_fills_up(tmp_path: Path, disk: Callable[[str, str], Path]) -> None:
    index = disk("data/index", "256k")
    with Service(tmp_path / "data", SOON) as service:
        count = 60
        for number in range(count):
            send(service.grpc, asked("s", "Where is my order? " * 200, number=number))

        wanted = {trace_id("s", number) for number in range(count)}
        service.wait_for("all is scored", lambda: wanted <= scored(service), 30)
        service.wait_for("the failure is counted", lambda: failures(service) > 0, 10)
        remount(index, "size=64m")
        service.wait_for("all is shown", lambda: is_shown(service, count - 1), 30)
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
