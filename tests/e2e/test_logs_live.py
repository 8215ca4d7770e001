"""Recordings of log records through the real process: any order, everything twice, killed in between; as offline.

`SPANWISE_LOG_CAPTURES` names another folder of recordings.
"""

import os
import random
from collections.abc import Sequence
from pathlib import Path

import grpc
import pytest

from collector.otlp.signal import LOGS_SERVICE, TRACE_SERVICE
from tests.support.command import evaluated
from tests.support.recorded_signals import Signal, key, newest_final
from tests.support.recordings import requests
from tests.support.service import Service

FOLDER = Path(
    os.environ.get("SPANWISE_LOG_CAPTURES") or Path(__file__).parents[1] / "data" / "captures_logs"
)
SETTINGS = (
    "windows.trace.root_grace=40s",
    "windows.trace.local_root_grace=40s",
    "windows.trace.idle=50s",
    "windows.session.idle=60s",
)
"""Longer than all of it takes to arrive, kills included, also on a busy machine: nothing closes before it is there."""
RANKED = {"work_baseline"}
"""A session's rank is among those that closed before it, and they close in another order than offline."""
KILLS = 3
LARGE = [("grpc.max_send_message_length", 64 << 20)]
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
Sent = tuple[str, bytes]


def every_request() -> list[Sent]:
    """Each with the gRPC method that takes it."""
    sent: list[Sent] = []
    for path in sorted(FOLDER.rglob("*.otlp")):
        if path.name.endswith(".metrics.otlp"):
            continue
        service = LOGS_SERVICE if path.name.endswith(".logs.otlp") else TRACE_SERVICE
        sent += [(service.method, each) for each in requests(path)]
    return sent


def send(target: str, every: Sequence[Sent]) -> list[str]:
    """What was not accepted whole."""
    with grpc.insecure_channel(target, options=LARGE) as channel:
        answers = [
            (method, channel.unary_unary(method, bytes, bytes)(request, timeout=60))
            for method, request in every
        ]
    # An empty message: no partial success.
    return [f"{method}: {answer!r}" for method, answer in answers if answer]


@pytest.fixture(scope="module")
def offline() -> list[Signal]:
    return evaluated(str(FOLDER))


def test_any_order_doubled_and_killed_gives_the_signals_of_the_same_recordings_offline(
    offline: list[Signal], tmp_path: Path
) -> None:
    order = random.Random(15)
    every = every_request() * 2
    order.shuffle(every)
    sessions = {key(each) for each in offline}
    part = len(every) // (KILLS + 1) + 1
    service = Service(tmp_path / "data", *SETTINGS)
    with service:
        for first in range(0, len(every), part):
            if first:
                service.kill()
                service.start()
            assert send(service.grpc, every[first : first + part]) == []

        def closed() -> bool:
            """Sessions are ranked when their other signals are there."""
            ranked = (each for each in service.signals() if each["evaluator"] == "work_baseline")
            return {key(each) for each in ranked if each["final"]} >= sessions

        service.wait_for("every session closed", closed, timeout=400)
        live = newest_final(service.signals())

    alone = newest_final(offline)
    assert live.keys() == alone.keys()
    compared = ("id", "score", "outcome", "reason", "explanation", "session_source")
    differing = {
        at: [(name, each[name], alone[at][name]) for name in compared]
        for at, each in live.items()
        if each["evaluator"] not in RANKED
        and any(each[name] != alone[at][name] for name in compared)
    }
    assert differing == {}
