"""kill -9 at any moment loses no acknowledged span, changes no score, and every repeat is byte for byte the same."""

import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support import agents
from tests.support.fleet import differing, latest, quiet, scores, turns
from tests.support.sender import Sender
from tests.support.service import Service

pytestmark = [pytest.mark.e2e]

SETTINGS = ("windows.trace.root_grace=1s", "windows.trace.idle=5m", "sinks.jsonl.max_size=1GiB")


def headline(service: Service) -> dict[str, float]:
    """The gauges that people are paged by."""
    return {
        name: value
        for name, value in service.metrics().items()
        if name.startswith(("spanwise_agent_reliability_ratio", "spanwise_agent_consistency_ratio"))
    }


def settled(service: Service, expected: list[agents.Turn]) -> bool:
    """Whether every trace is closed, scored and delivered."""
    done = latest(service.signals())
    traces = {key[2] for key in done if key[1] == "trace"}
    wanted = {agents.trace_id(turn).hex() for turn in expected}
    metrics = service.metrics()
    idle = not metrics.get("spanwise_traces_active") and not metrics.get(
        'spanwise_outbox_records{sink="jsonl"}'
    )
    return wanted <= traces and idle


def undisturbed(folder: Path, expected: list[agents.Turn], sent: list[bytes]) -> dict[Any, Any]:
    """The same requests without any crash."""
    with Service(folder, *SETTINGS) as service:
        sender = Sender(sent, lambda: service.grpc)
        sender.start()
        sender.join(120)
        assert sender.acknowledged == len(sent)
        service.wait_for("every trace scored", lambda: settled(service, expected), 120)
        quiet(service)  # the last session signals follow the last trace's, and the gauges both
        return {"scores": scores(service.signals()), "headline": headline(service)}


def disturbed(
    folder: Path, sent: list[bytes], whole: dict[Any, Any], *, kills: int, seed: int
) -> dict[Any, Any]:
    """The same requests, the process killed `kills` times while they are in flight."""
    moments = random.Random(seed)
    service = Service(folder, *SETTINGS).start()
    pause = kills * 0.55 / len(sent)
    sender = Sender(sent, lambda: service.grpc, pause=pause)
    sender.start()
    try:
        for _ in range(kills):
            time.sleep(moments.uniform(0.05, 0.9))
            service.kill()
            service.start()
        sender.join(120)
        assert sender.acknowledged == len(sent)
        found = service.come_to(whole["scores"], lambda: scores(service.signals()), 120)
        before = service.come_to(whole["headline"], lambda: headline(service))
        service.kill()
        service.start()
        after = service.come_to(before, lambda: headline(service))
        return {
            "scores": found,
            "lines": service.signal_lines(),
            "headline": before,
            "headline_after_restart": after,
        }
    finally:
        sender.give_up.set()
        service.kill()


def check(tmp_path: Path, *, kills: int, sessions: int, length: int, seed: int) -> None:
    expected = turns(sessions, length)
    sent = list(agents.requests(expected))
    whole = undisturbed(tmp_path / "whole", expected, sent)

    broken = disturbed(tmp_path / "broken", sent, whole, kills=kills, seed=seed)

    lost = whole["scores"].keys() - broken["scores"].keys()
    changed = {
        key: (value, broken["scores"].get(key))
        for key, value in whole["scores"].items()
        if broken["scores"].get(key) != value
    }
    repeats = len(broken["lines"]) - len(set(broken["lines"]))
    print(
        f"kills={kills} requests={len(sent)} traces={len(expected)} signals={len(broken['lines'])} "
        f"repeats={repeats} differing={differing(broken['lines'])} lost={len(lost)}"
    )
    assert not lost
    assert not changed
    assert differing(broken["lines"]) == 0
    assert broken["headline"] == whole["headline"]
    assert broken["headline_after_restart"] == broken["headline"]


@pytest.mark.timeout(900)
def test_twenty_kills_lose_nothing_and_change_nothing(tmp_path: Path) -> None:
    check(tmp_path, kills=20, sessions=12, length=8, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_two_hundred_kills_lose_nothing_and_change_nothing(tmp_path: Path) -> None:
    check(tmp_path, kills=200, sessions=24, length=30, seed=2)
