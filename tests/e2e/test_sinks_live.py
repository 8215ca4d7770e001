"""Signals that leave the real process: to a real Kafka broker, also one that comes late, and to an OTLP backend."""

import asyncio
import json
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest
from aiokafka.structs import ConsumerRecord

from tests.support.asking import asked, trace_id
from tests.support.eventually import eventually
from tests.support.kafka.kafka_node import KafkaNode
from tests.support.kafka.topics import create_topic, read_topic
from tests.support.otlp_logs import grpc_server, http_server
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

QUICK = "windows.trace.root_grace=300ms"


def to_kafka(bootstrap: str, topic: str) -> tuple[str, ...]:
    return (QUICK, f"sinks.kafka.bootstrap_servers={bootstrap}", f"sinks.kafka.topic={topic}")


def traces_of(records: Sequence[ConsumerRecord]) -> set[str]:
    return {json.loads(each.value or b"")["trace_id"] for each in records} - {None}


def ids_of(records: Sequence[ConsumerRecord]) -> set[str]:
    return {json.loads(each.value or b"")["id"] for each in records}


@pytest.mark.kafka
async def test_signals_are_cloud_events_keyed_by_session(kafka: str, tmp_path: Path) -> None:
    topic = f"signals-{uuid.uuid4().hex}"
    await create_topic(kafka, topic, partitions=3)
    with Service(tmp_path / "data", *to_kafka(kafka, topic)) as service:
        send(service.grpc, *(asked(f"s-{n}", "Where is my order?") for n in range(5)))
        acked = 'spanwise_signals_total{result="acked",sink="%s"}'

        acked_lines: list[str] = []

        def both_have_all() -> bool:
            acked_lines[:] = service.signal_lines()
            metrics = service.metrics()
            counts = {metrics.get(acked % sink) for sink in ("kafka", "jsonl")}
            return counts == {len(acked_lines)} and scored(service) == 5

        await asyncio.to_thread(service.wait_for, "both sinks have all", both_have_all)

    found = await read_topic(kafka, topic)

    # What is published from here on may reach one sink before the stop and the other at the next start.
    delivered = {each.value.decode() for each in found if each.value}
    assert set(acked_lines) <= delivered
    assert delivered <= set(service.signal_lines())
    for record in found:
        signal = json.loads(record.value or b"")
        headers = {name: value.decode() for name, value in record.headers}
        assert record.key == signal["session_id"].encode()
        assert headers["ce_specversion"] == "1.0"
        assert headers["ce_id"] == signal["id"]
        assert headers["ce_source"] == "/agents/desk-bot"
        assert headers["ce_type"] == f"spanwise.signal.{signal['scope']}.v1"
        assert headers["ce_time"] == signal["time"]
        assert headers["content-type"] == "application/json"
        if signal["trace_id"]:
            assert headers["traceparent"].split("-")[1] == signal["trace_id"]


@pytest.mark.kafka
async def test_a_broker_that_comes_late_gets_everything_and_no_other_sink_waits_for_it(
    kafka_node: KafkaNode, tmp_path: Path
) -> None:
    topic = f"signals-{uuid.uuid4().hex}"
    await create_topic(kafka_node.bootstrap, topic)
    await asyncio.to_thread(kafka_node.kill)
    service = Service(tmp_path / "data", *to_kafka(kafka_node.bootstrap, topic)).start()
    try:
        waiting = 'spanwise_outbox_records{sink="kafka"}'
        send(service.grpc, asked("first", "Where is my order?"))
        service.wait_for("the other sink has it", service.signals)
        service.wait_for("it waits for Kafka", lambda: service.metrics().get(waiting, 0) > 0)
        service.become_ready()

        assert service.stop(30) == 0, "a stop is bounded while the broker is away"

        service.start()
        send(service.grpc, asked("second", "And mine?"))
        service.wait_for("the other sink has both", lambda: len(session_ids(service)) == 2)
        await asyncio.to_thread(kafka_node.start)
        await asyncio.to_thread(
            service.wait_for,
            "the outbox is empty",
            lambda: service.metrics().get(waiting) == 0,
            120,
        )
        expected = {each["id"] for each in service.signals()}
    finally:
        service.stop()

    found = await read_topic(kafka_node.bootstrap, topic)

    assert ids_of(found) == expected
    assert traces_of(found) == {trace_id("first"), trace_id("second")}


def scored(service: Service) -> int:
    """Sessions whose score has arrived: it is the last signal of a session of one trace."""
    return len(session_ids(service))


def session_ids(service: Service) -> set[str]:
    return {each["session_id"] for each in service.signals() if each["scope"] == "session"}


@pytest.mark.parametrize("protocol", ["grpc", "http"])
async def test_an_otlp_backend_gets_every_scored_signal_as_an_event(
    protocol: str, tmp_path: Path
) -> None:
    async with (grpc_server if protocol == "grpc" else http_server)() as backend:
        settings = (
            QUICK,
            f"sinks.otlp.endpoint={backend.endpoint}",
            f"sinks.otlp.protocol={protocol}",
            "sinks.otlp.headers={x-tenant: acme}",
        )
        service = Service(tmp_path / "data", *settings)
        await asyncio.to_thread(service.start)
        try:
            await asyncio.to_thread(send, service.grpc, asked("otlp", "Where is my order?"))
            await eventually(lambda: len(backend.records()) >= 7)
        finally:
            await asyncio.to_thread(service.stop)

    signals = {each["id"]: each for each in service.signals()}  # the file may be the slower sink
    for record in backend.records():
        attributes = {each.key: each.value for each in record.attributes}
        signal = signals[attributes["spanwise.id"].string_value]
        assert record.event_name == "gen_ai.evaluation.result"
        assert attributes["gen_ai.evaluation.name"].string_value == signal["evaluator"]
        assert ("gen_ai.evaluation.score.value" in attributes) == (signal["score"] is not None)
        assert record.trace_id.hex() == (signal["trace_id"] or "")
        assert record.span_id.hex() == (signal["span_id"] or "")
    assert all(each["x-tenant"] == "acme" for each in backend.headers)
