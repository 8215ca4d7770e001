"""OpenTelemetry's own Collector as the backend under `forward`, which was away."""

import json
from collections import Counter
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from tests.support.clocks import eventually
from tests.support.otlp import body, span, spans_of
from tests.support.otlp_server import Backend, http_backend
from tests.support.sender import send
from tests.support.service import Service
from tests.support.tools.tool import OTELCOL, serve

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
FAILED = Status.STATUS_CODE_ERROR
KEEP = {"share": 0, "others": 0, "slow": None, "new_versions": 0, "wait": "200ms"}


def arrived(backend: Backend) -> Counter[int]:
    """By trace, how many different spans of it."""
    requests = map(ExportTraceServiceRequest.FromString, list(backend.requests))
    spans = {(int.from_bytes(s.trace_id), s.span_id) for r in requests for s in spans_of(r)}
    return Counter(trace for trace, _ in spans)


@pytest.mark.parametrize("protocol", ["grpc", "http"])
@pytest.mark.parametrize("keep", [None, KEEP], ids=["all", "failed"])
async def test_a_collector_that_was_away_gets_every_trace_whole(
    tmp_path: Path, protocol: str, keep: dict[str, object] | None
) -> None:
    sent = range(1, 31)
    async with http_backend() as backend:
        server = serve(OTELCOL, tmp_path, backend=backend.endpoint)
        endpoint = server.grpc if protocol == "grpc" else server.url
        forward = {"endpoint": endpoint, "protocol": protocol, "keep": keep}
        settings = (f"forward={json.dumps(forward)}", "windows.trace.root_grace=100ms")
        try:
            with Service(tmp_path / "data", *settings, workers=0) as service:
                for number in sent:
                    if number == 10:
                        server.stop()
                    root, child = span(number, 1), span(number, 2)
                    child.parent_span_id = root.span_id
                    root.status.code = Status.STATUS_CODE_OK if number % 3 else FAILED
                    send(service.grpc, body(child, root))
                server.start()
                wanted = {n: 2 for n in sent if keep is None or n % 3 == 0}  # its two spans
                await eventually(lambda: arrived(backend) == wanted)
        finally:
            server.stop()
