"""Ten minutes of load on a Kafka log while processes die, hang, leave and come back, and the broker dies once."""

import os
import random
import time
from collections import Counter
from dataclasses import dataclass, field, replace
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
BROKER_AWAY = 6.0
CALM = 5.0


def load(seconds: float) -> list[agents.Turn]:
    """Sessions that come, last for some turns and are followed by others."""
    cohorts = max(1, round(seconds * TURNS_A_SECOND / (SESSIONS * LENGTH)))
    return [
        replace(turn, session=f"{cohort}-{turn.session}")
        for cohort in range(cohorts)
        for turn in turns(SESSIONS, LENGTH)
    ]


@dataclass(slots=True)
class Trouble:
    """Chooses what happens next; the same choices for the same seed."""

    services: dict[str, Service]
    node: KafkaNode
    chance: random.Random = field(default_factory=lambda: random.Random(SEED))
    happened: Counter[str] = field(default_factory=Counter[str])

    def until_sent(self, sender: Sender, seconds: float) -> None:
        """Something every few seconds until all is acknowledged; the broker dies in the middle."""
        began = time.monotonic()
        while sender.is_alive() and time.monotonic() < began + 2 * seconds:
            sender.join(self.chance.uniform(2.0, 6.0))
            if not self.happened["broker"] and time.monotonic() > began + seconds / 2:
                self._broker()
            else:
                self._process()
        sender.give_up.set()
        sender.join(10)

    def _process(self) -> None:
        name = self.chance.choice(sorted(self.services))
        what = self.chance.choice(("kill", "kill", "pause", "stop"))
        service = self.services[name]
        self.happened[what] += 1
        if what == "pause":
            service.pause()
            time.sleep(self.chance.uniform(1.0, 11.0))  # the session timeout is 6 s
            service.resume()
            return
        if what == "kill":
            service.kill()
        else:
            assert service.stop(60) == 0
        time.sleep(self.chance.uniform(0.0, 3.0))
        service.start()

    def _broker(self) -> None:
        self.happened["broker"] += 1
        self.node.kill()
        time.sleep(BROKER_AWAY)
        self.node.start()


@pytest.mark.timeout(3 * SECONDS + 900)
def test_a_fleet_in_trouble_says_what_one_process_says(
    tmp_path: Path, kafka_node: KafkaNode
) -> None:
    expected = load(SECONDS)
    sent = list(agents.requests(expected))
    whole = alone(tmp_path / "alone", kafka_node.bootstrap, expected, sent)

    with Fleet(tmp_path / "fleet", kafka_node.bootstrap) as fleet:
        services = {
            "receiver": fleet.add("receiver", "receive"),
            "first": fleet.add("first", "assemble", "score"),
            "second": fleet.add("second", "assemble", "score"),
            "publisher": fleet.add("publisher", "publish"),
        }
        publisher = services["publisher"]
        workers = [services["first"], services["second"]]
        trouble = Trouble(services, kafka_node)
        sender = Sender(sent, lambda: services["receiver"].grpc, pause=SECONDS / len(sent))
        began = time.monotonic()
        sender.start()
        trouble.until_sent(sender, SECONDS)
        lasted = time.monotonic() - began
        assert sender.acknowledged == len(sent), f"{sender.acknowledged} of {len(sent)}"
        fleet.settle(publisher, expected, workers, 180)
        counts = " ".join(f"{what}={count}" for what, count in sorted(trouble.happened.items()))
        check(publisher, whole, f"soak of {lasted:.0f} s ({counts})", len(sent), len(expected))
        assert trouble.happened["broker"] == 1
        time.sleep(CALM)
        assert lag([publisher, *workers]) == 0
        for each in services.values():
            assert each.stop(60) == 0
