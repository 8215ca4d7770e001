"""The real process forwards what it should over an outage of its backend and `kill -9`, with `keep` and without."""

import json
from collections import Counter
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.support.eventually import eventually
from tests.support.otlp import body, span
from tests.support.otlp_backend import Backend, grpc_backend
from tests.support.received_log import spans_of
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e]


def service(folder: Path, backend: Backend, keep: dict[str, object] | None) -> Service:
    return Service(
        folder,
        f"forward={json.dumps({'endpoint': backend.endpoint, 'keep': keep})}",
        "windows.trace.root_grace=100ms",
        workers=0,
    ).start()


def turn(number: int, *, failed: bool) -> list[Span]:
    root, child = span(number, 1), span(number, 2)
    child.parent_span_id = root.span_id
    if failed:
        root.status.code = Status.STATUS_CODE_ERROR
    return [child, root]


def arrived(backend: Backend) -> Counter[int]:
    """By trace, how many different spans of it."""
    requests = map(ExportTraceServiceRequest.FromString, backend.requests)
    spans = [each for request in requests for each in spans_of(request)]
    return Counter(trace for trace, _ in {(int.from_bytes(s.trace_id), s.span_id) for s in spans})


FAILED = {"share": 0, "others": 0, "slow": None, "new_versions": 0, "wait": "500ms"}


@pytest.mark.parametrize(("keep", "kills"), [(None, 3), (FAILED, 10)], ids=["all", "failed"])
async def test_an_outage_and_kills_lose_nothing(
    tmp_path: Path, keep: dict[str, object] | None, kills: int
) -> None:
    async with grpc_backend() as backend:
        backend.code = "UNAVAILABLE"
        sent = 0
        for _ in range(kills):
            running = service(tmp_path / "data", backend, keep)
            for _ in range(10):
                sent += 1
                send(running.grpc, body(*turn(sent, failed=sent % 3 == 0)))
            await eventually(lambda: backend.tries > 0)
            running.kill()
        backend.code = "OK"
        running = service(tmp_path / "data", backend, keep)
        wanted = {n: 2 for n in range(1, sent + 1) if keep is None or n % 3 == 0}  # its two spans
        try:
            await eventually(lambda: arrived(backend) == wanted)
        finally:
            running.kill()
