"""Processes come and go on a Kafka log: nothing is lost, no score changes, every repeat is byte for byte the same."""

import time
from pathlib import Path

import pytest

from tests.support import agents
from tests.support.fleet import (
    Fleet,
    Scores,
    differing,
    lag,
    quiet,
    scores,
    send,
    turns,
)
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.kafka]


def alone(folder: Path, bootstrap: str, expected: list[agents.Turn], sent: list[bytes]) -> Scores:
    """The scores of one process that has all roles and is left in peace."""
    with Fleet(folder, bootstrap) as fleet:
        one = fleet.add("one", "receive", "assemble", "score", "publish")
        send(sent, lambda: one.grpc, during=lambda: None, pause=0.0)
        fleet.settle(one, expected, [])
        quiet(one)
        assert one.stop() == 0
        return scores(one.signals())


def check(publisher: Service, whole: Scores, label: str, sent: int, traces: int) -> None:
    """The same scores, and nothing said twice in two ways."""
    quiet(publisher)
    lines = publisher.signal_lines()
    found = scores(publisher.signals())
    repeats = len(lines) - len(set(lines))
    print(f"{label}: {sent=} {traces=} signals={len(lines)} {repeats=}")
    assert {key: found.get(key) for key in whole} == whole
    assert differing(lines) == 0


@pytest.mark.timeout(600)
def test_members_that_come_go_die_and_wake_up_change_nothing(tmp_path: Path, kafka: str) -> None:
    expected = turns(sessions=10, length=14)
    sent = list(agents.requests(expected))
    whole = alone(tmp_path / "alone", kafka, expected, sent)

    with Fleet(tmp_path / "fleet", kafka) as fleet:
        receiver = fleet.add("receiver", "receive")
        publisher = fleet.add("publisher", "publish")
        first = fleet.add("first", "assemble", "score")
        others: list[Service] = []

        def happens() -> None:
            others.append(fleet.add("second", "assemble", "score"))
            others.append(fleet.add("third", "assemble", "score"))
            time.sleep(4)
            others[0].kill()
            time.sleep(1)
            others[1].pause()
            time.sleep(9)  # longer than the session timeout: its partitions are another's now
            others[1].resume()
            time.sleep(4)
            assert others[1].stop() == 0

        send(sent, lambda: receiver.grpc, during=happens, pause=24 / len(sent))
        fleet.settle(publisher, expected, [first])
        check(publisher, whole, "rebalances", len(sent), len(expected))
        assert lag([first, publisher]) == 0
        assert first.stop() == 0
        assert receiver.stop() == 0
