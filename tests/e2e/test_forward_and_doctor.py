"""The real process passes requests on to a second OTLP server, and `spanwise doctor` reads what it holds."""

import json
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.config.tree import Admin, Config
from collector.doctor.diagnosis import ExaminedTrace
from collector.doctor.sources import AdminApi, seen_by_service
from collector.service import recordings
from tests.support.eventually import eventually
from tests.support.otlp_backend import grpc_backend
from tests.support.received_log import spans_of
from tests.support.service import Service

pytestmark = [pytest.mark.e2e]
CAPTURE = Path(__file__).parents[1] / "data" / "captures" / "openai_v2" / "session.otlp"


def send(service: Service, body: bytes) -> None:
    headers = {"content-type": "application/x-protobuf"}
    with urllib.request.urlopen(urllib.request.Request(service.http, body, headers), timeout=10):
        pass


def span_ids(requests: Sequence[bytes]) -> list[bytes]:
    return [
        each.span_id
        for request in requests
        for each in spans_of(ExportTraceServiceRequest.FromString(request))
    ]


async def test_a_recording_sent_is_forwarded_and_diagnosed(tmp_path: Path) -> None:
    requests = list(recordings.requests(CAPTURE))
    async with grpc_backend() as backend:
        service = Service(
            tmp_path / "data",
            f"forward={json.dumps({'endpoint': backend.endpoint})}",
            "windows.trace.root_grace=100ms",
            workers=0,
        ).start()
        try:
            for each in requests:
                send(service, each)
            sent = sorted(span_ids(requests))
            await eventually(lambda: len(span_ids(backend.requests)) >= len(sent))
            port = int(service.admin.rpartition(":")[2])
            config = Config(admin=Admin(port=port))

            def read() -> Sequence[ExaminedTrace]:
                return seen_by_service(AdminApi(config.admin), config, limit=10).traces

            def settled() -> bool:  # what came after `root_grace` makes a revision
                return ["no_content" in each.lacks for each in read()] == [True] * 3

            await eventually(settled)
            seen = read()
        finally:
            service.kill()

    assert sorted(span_ids(backend.requests)) == sent
    assert {scope for each in seen for scope in each.scopes} == {
        "my.agent 1.0",
        "opentelemetry.instrumentation.openai_v2",
    }
    assert all("no_content" in each.lacks for each in seen)
