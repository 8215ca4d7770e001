"""The broker is away at the start, dies under load, comes back: receivers say so, nothing is lost or changed."""

import time
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.e2e.test_kafka_fleet import alone, check
from tests.support import agents
from tests.support.fleet import Fleet, send, turns
from tests.support.kafka.kafka_node import KafkaNode
from tests.support.sender import EXPORT

pytestmark = [pytest.mark.e2e, pytest.mark.kafka]


def refusal(target: str, request: bytes) -> tuple[str, list[str]] | None:
    """What a receiver says to one request: code, and keys of what comes with it; None: it took it."""
    with grpc.insecure_channel(target) as channel:
        call = channel.unary_unary(EXPORT, request_serializer=bytes, response_deserializer=bytes)
        try:
            call(request, timeout=30)
        except grpc.RpcError as error:
            stated: Any = error
            return stated.code().name, [key for key, _ in stated.trailing_metadata()]
    return None


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seconds", [8, pytest.param(60, marks=pytest.mark.slow)])
def test_a_short_outage_under_load(tmp_path: Path, kafka_node: KafkaNode, seconds: int) -> None:
    """One process of each role; the broker away at the start, then killed under load."""
    expected = turns(sessions=6, length=10)
    sent = list(agents.requests(expected))
    whole = alone(tmp_path / "alone", kafka_node.bootstrap, expected, sent)
    kafka_node.kill()
    with Fleet(tmp_path / "fleet", kafka_node.bootstrap) as fleet:
        receiver = fleet.add("receiver", "receive")
        code, details = refusal(receiver.grpc, sent[0]) or ("", [])
        assert code == "UNAVAILABLE"
        assert "grpc-status-details-bin" in details  # RetryInfo
        worker = fleet.add("worker", "assemble", "score")
        publisher = fleet.add("publisher", "publish")
        kafka_node.start()

        def happens() -> None:
            time.sleep(5)
            kafka_node.kill()
            time.sleep(seconds)
            assert refusal(receiver.grpc, sent[-1]) is not None
            kafka_node.start()

        sender = send(sent, lambda: receiver.grpc, during=happens, pause=8 / len(sent))
        fleet.settle(publisher, expected, [worker])
        check(publisher, whole, f"outage of {seconds} s", len(sent), len(expected))
        assert sender.tries > len(sent)
        flood = max(len(each.output.read_text().splitlines()) for each in fleet.services)
        assert flood < 200 + 10 * seconds
        assert [each.stop() for each in (receiver, worker, publisher)] == [0, 0, 0]


@pytest.mark.timeout(300)
def test_a_stop_while_the_broker_is_away_keeps_its_deadline(
    tmp_path: Path, kafka_node: KafkaNode
) -> None:
    with Fleet(tmp_path / "fleet", kafka_node.bootstrap, partitions=2) as fleet:
        one = fleet.add("one", "receive", "assemble", "score", "publish")
        assert refusal(one.grpc, next(agents.requests(turns(1, 3)))) is None
        kafka_node.kill()
        time.sleep(1)

        began = time.monotonic()
        assert one.stop(60) == 0

        assert time.monotonic() - began < 30
