"""What the pages name, against one real service with its default configuration: nothing of it is a fault.

And what they promise of one bad item among good ones: it alone is refused, by name.
"""

import gzip
import json
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.support.dialect_spans import SpanSpec, request
from tests.support.documented_edges import BODIES, GATE, READ, TAKEN, TIMES, TRACE, requests
from tests.support.service import Service

PROTOBUF = {"content-type": "application/x-protobuf"}
HALF = json.loads('"\\ud83d"')
TEXTS: tuple[Any, ...] = ("thumb", "", "x" * 70_000, "a\0b", HALF, "\u202e", 1, None, [], {})
VALUES: tuple[Any, ...] = (True, 0.5, -1, 1e308, 10**400, "0.5", None, [], {})
SCALES: tuple[Any, ...] = ({"min": 1, "max": 5}, {"min": 1, "max": 1}, {"min": "x"}, [], None, 3)
FIELDS: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "/v1/feedback": {
        **dict.fromkeys(("trace_id", "session_id", "task_id", "span_id"), (TRACE, *TEXTS)),
        **dict.fromkeys(("service", "name", "label", "comment", "source", "id"), TEXTS),
        "kind": ("human", "code", "llm", *TEXTS),
        "value": VALUES,
        "scale": SCALES,
        "time": (*TIMES, *TEXTS),
    },
    "/v1/evaluations": {
        **dict.fromkeys(("trace_id", "session_id", "span_id"), (TRACE, *TEXTS)),
        **dict.fromkeys(("service", "name", "label", "explanation", "version", "id"), TEXTS),
        "scope": ("session", "trace", *TEXTS),
        "value": VALUES,
        "scale": SCALES,
        "time": (*TIMES, *TEXTS),
    },
}
"""Of every field that docs/feedback.md and docs/external-evaluators.md name."""
ITEM = {"trace_id": TRACE, "name": "thumb", "value": True}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(tmp_path_factory.mktemp("documented") / "data") as started:
        yield started.become_ready()


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.admin, trust_env=False, timeout=60) as made:
        yield made


@pytest.fixture(scope="module")
def sender(service: Service) -> Iterator[httpx.Client]:
    url = service.http.removesuffix("/v1/traces")
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as made:
        yield made


@pytest.mark.parametrize("path", READ)
def test_no_parameter_makes_a_fault(path: str, client: httpx.Client) -> None:
    for query in requests(path, pairs=False):  # those are tried in one process
        reply = client.get(f"{path.replace('{id}', quote(TRACE))}?{query}")
        assert reply.status_code < 500, (path, query[:200], reply.text[:300])


def test_no_body_makes_a_fault(client: httpx.Client, sender: httpx.Client) -> None:
    for body in BODIES:
        assert client.post(GATE, content=body).status_code < 500, body
        for path, media in product(TAKEN, ("application/json", "application/x-protobuf")):
            for content, coding in ((body, "identity"), (gzip.compress(body), "gzip")):
                headers = {"content-type": media, "content-encoding": coding}
                reply = sender.post(path, content=content, headers=headers)
                assert reply.status_code < 500, (path, media, coding, body[:40], reply.text)


@pytest.mark.parametrize("path", FIELDS)
def test_each_field_at_its_edges_is_taken_or_refused_alone(path: str, sender: httpx.Client) -> None:
    fields = FIELDS[path]
    edges = [{**ITEM, name: edge} for name, found in fields.items() for edge in found]
    edges += [{n: found[turn % len(found)] for n, found in fields.items()} for turn in range(12)]
    for item in edges:
        sent = json.dumps({path.rpartition("/")[2]: [ITEM, item, {**ITEM, "id": "last"}]})
        reply = sender.post(path, content=sent)
        assert reply.status_code == 200, (str(item)[:300], reply.text[:300])
        told = reply.json()
        refused = [each["index"] for each in told["rejected"]]
        assert told["accepted"] + len(refused) == 3
        assert refused in ([], [1]), (str(item)[:300], reply.text[:300])
        assert all(each["message"] for each in told["rejected"])


def _spans(*broken: int) -> bytes:
    """Ten spans, of which some have an id of no span."""
    made = ExportTraceServiceRequest.FromString(
        request(*(SpanSpec(id=n, name="work", end=n, parent=n - 1) for n in range(1, 11)))
    )
    spans = [s.spans[0] for each in made.resource_spans for s in each.scope_spans]
    for number in broken:
        spans[number].span_id = b"short"
    return made.SerializeToString()


def test_a_bad_span_is_the_only_one_refused(service: Service, sender: httpx.Client) -> None:
    before = service.metrics()
    reply = sender.post("/v1/traces", content=_spans(4, 9), headers=PROTOBUF)

    assert reply.status_code == 200
    told = ExportTraceServiceResponse.FromString(reply.content).partial_success
    assert told.rejected_spans == 2
    assert told.error_message
    grown = _grown(before, service.metrics(), "spanwise_spans_received_total")
    assert grown == {"accepted": 8, "invalid": 2}


def test_a_log_record_without_a_whole_trace_id_costs_no_other(
    service: Service, sender: httpx.Client
) -> None:
    made = ExportLogsServiceRequest()
    scope = made.resource_logs.add().scope_logs.add()
    for trace_id in (b"\1" * 16, b"short", b"", b"\2" * 16):
        record = scope.log_records.add(trace_id=trace_id, event_name="gen_ai.user.message")
        record.body.string_value = "hello"
    before = service.metrics()
    reply = sender.post("/v1/logs", content=made.SerializeToString(), headers=PROTOBUF)

    assert reply.status_code == 200, reply.text
    grown = _grown(before, service.metrics(), "spanwise_log_records_received_total")
    assert grown == {"accepted": 4}


def test_metrics_are_answered_and_dropped(sender: httpx.Client) -> None:
    assert sender.post("/v1/metrics", content=b"\xff", headers=PROTOBUF).status_code == 200


def _grown(before: Mapping[str, float], after: Mapping[str, float], name: str) -> dict[str, float]:
    grown: dict[str, float] = {}
    for series, value in after.items():
        if series.startswith(name) and (more := value - before.get(series, 0)):
            result = series.partition('result="')[2].partition('"')[0]
            grown[result] = grown.get(result, 0) + more
    return grown


def test_the_service_is_ready_after_all_that(service: Service, client: httpx.Client) -> None:
    assert client.get("/readyz").status_code == 200
    assert "Traceback" not in Path(service.output).read_text()
