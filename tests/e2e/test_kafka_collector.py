"""A stock OpenTelemetry Collector as the receiver: its Kafka exporter's records, and one that nobody can read."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support import agents
from tests.support.fleet import Fleet, differing, latest, scores, turns

pytestmark = [pytest.mark.e2e, pytest.mark.kafka]

PARTITIONS = 3
POISON = b"\xff\xff not OTLP"
Shaped = tuple[bytes | None, int, bytes]


def fnv1a(key: bytes) -> int:
    """How the Collector's client hashes keys: not the way Kafka's own does."""
    digest = 0x811C9DC5
    for byte in key:
        digest = (digest ^ byte) * 0x01000193 & 0xFFFFFFFF
    return digest


def by_trace(requests: Iterable[bytes]) -> list[Shaped]:
    """`partition_traces_by_id`: a record per trace of a batch, its key the trace id in hex."""
    shaped: list[Shaped] = []
    for each in requests:
        whole = ExportTraceServiceRequest.FromString(each)
        ids = {
            span.trace_id
            for resource in whole.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        }
        for trace_id in sorted(ids):
            key = trace_id.hex().encode()
            shaped.append((key, fnv1a(key) % PARTITIONS, only(whole, trace_id)))
    return shaped


def only(whole: ExportTraceServiceRequest, trace_id: bytes) -> bytes:
    """The batch without other traces' spans."""
    cut = ExportTraceServiceRequest()
    cut.CopyFrom(whole)
    for resource in cut.resource_spans:
        for scope in resource.scope_spans:
            kept = [span for span in scope.spans if span.trace_id == trace_id]
            del scope.spans[:]
            scope.spans.extend(kept)
    return cut.SerializeToString()


async def produce(bootstrap: str, topic: str, records: Iterable[Shaped]) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    for key, partition, value in records:
        await producer.send(topic, value=value, key=key, partition=partition)
    await producer.stop()


@pytest.mark.timeout(400)
def test_records_of_a_collector_are_scored_and_poison_is_passed_over(
    tmp_path: Path, kafka: str
) -> None:
    traces = turns(sessions=6, length=4)
    sent = list(agents.requests(traces))
    shapes: dict[str, list[Shaped]] = {
        "by_trace": by_trace(sent),
        "several_traces": [(None, 1, each) for each in sent],
    }
    shapes["by_trace"].insert(5, (b"x", 0, POISON))
    found: dict[str, object] = {}
    for name, records in shapes.items():
        with Fleet(tmp_path / name, kafka, partitions=PARTITIONS) as fleet:
            one = fleet.add("one", "assemble", "score", "publish")
            asyncio.run(produce(kafka, f"{fleet.prefix}spans", records))
            fleet.settle(one, traces, [])
            found[name] = {k: v for k, v in scores(one.signals()).items() if k[1] == "trace"}
            assert differing(one.signal_lines()) == 0
            assert {key[2] for key in latest(one.signals()) if key[1] == "trace"} == {
                agents.trace_id(turn).hex() for turn in traces
            }
            if name == "by_trace":
                assert one.metrics()['spanwise_poison_records_total{topic="spans"}'] == 1
                said = [
                    line for line in one.output.read_text().splitlines() if "passed over" in line
                ]
                assert len(said) == 1
                assert "`spans`, partition 0, offset" in said[0]
    assert found["by_trace"] == found["several_traces"]
