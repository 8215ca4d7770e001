"""Ten minutes of load on a Kafka log while processes die, hang, leave and come back, and the broker dies once."""

import os
import random
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.e2e.test_kafka_fleet import alone, check
from tests.support import agents
from tests.support.fleet import Fleet, lag, turns
from tests.support.kafka.kafka_node import KafkaNode
from tests.support.sender import Sender
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.slow]

SECONDS = float(os.environ.get("SOAK_SECONDS", "600"))
"""How long the load lasts; what is broken makes it a little longer."""
TURNS_A_SECOND = 6
SESSIONS, LENGTH = 10, 12
SEED = int(os.environ.get("SOAK_SEED", "11"))
ROLES = {
    "receiver": ["receive"],
    "first": ["assemble", "score"],
    "second": ["assemble", "score"],
    "publisher": ["publish"],
}


def load(seconds: float) -> list[agents.Turn]:
    """Sessions that come, last for some turns and are followed by others."""
    cohorts = max(1, round(seconds * TURNS_A_SECOND / (SESSIONS * LENGTH)))
    return [
        replace(turn, session=f"{cohort}-{turn.session}")
        for cohort in range(cohorts)
        for turn in turns(SESSIONS, LENGTH)
    ]


def trouble(service: Service, chance: random.Random) -> str:
    """What happens to a process."""
    what = chance.choice(("kill", "kill", "pause", "stop"))
    if what == "pause":
        service.pause()
        time.sleep(chance.uniform(1.0, 11.0))  # the session timeout is 6 s
        service.resume()
        return what
    if what == "kill":
        service.kill()
    else:
        assert service.stop(60) == 0
    time.sleep(chance.uniform(0.0, 3.0))
    service.start()
    return what


@pytest.mark.timeout(3 * SECONDS + 900)
def test_a_fleet_in_trouble_says_what_one_process_says(
    tmp_path: Path, kafka_node: KafkaNode
) -> None:
    expected = load(SECONDS)
    sent = list(agents.requests(expected))
    whole = alone(tmp_path / "alone", kafka_node.bootstrap, expected, sent)
    chance, happened = random.Random(SEED), Counter[str]()

    with Fleet(tmp_path / "fleet", kafka_node.bootstrap) as fleet:
        services = {name: fleet.add(name, *roles) for name, roles in ROLES.items()}
        receiver, *workers, publisher = services.values()
        sender = Sender(sent, lambda: receiver.grpc, pause=SECONDS / len(sent))
        began = time.monotonic()
        sender.start()
        while sender.is_alive() and time.monotonic() < began + 2 * SECONDS:
            sender.join(chance.uniform(2.0, 6.0))
            if not happened["broker"] and time.monotonic() > began + SECONDS / 2:
                happened["broker"] += 1
                kafka_node.kill()
                time.sleep(6.0)
                kafka_node.start()
            else:
                happened[trouble(services[chance.choice(sorted(services))], chance)] += 1
        sender.give_up.set()
        sender.join(10)
        assert sender.acknowledged == len(sent), f"{sender.acknowledged} of {len(sent)}"
        fleet.settle(publisher, expected, workers, 180)
        check(publisher, whole, f"soak ({happened})", len(sent), len(expected))
        assert happened["broker"] == 1
        time.sleep(5.0)
        assert lag([publisher, *workers]) == 0
        assert [each.stop(60) for each in services.values()] == [0] * len(services)
