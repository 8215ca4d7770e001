"""Forwarding against a real second OTLP server: gRPC and HTTP, there and away."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.base.errors import Retryable, TooLarge
from collector.base.http_client import LONGEST_WAIT
from collector.base.telemetry import Telemetry
from collector.config.sinks import OtlpTarget
from collector.forward.backend import Backends
from collector.forward.forwarder import Forwarder
from collector.forward.reader import Way
from collector.otlp.client import GrpcTransport
from collector.otlp.signal import LOGS_SERVICE, TRACE_SERVICE
from tests.support import otlp_server
from tests.support.clocks import eventually
from tests.support.otlp import body, span, spans_of
from tests.support.otlp_server import Backend, grpc_backend, http_backend
from tests.support.receiving import Served, export, serving

LogsAt = Callable[[], contextlib.AbstractAsyncContextManager[otlp_server.LogsServer]]
Server = Callable[..., contextlib.AbstractAsyncContextManager[Backend]]
PROTOCOLS = pytest.mark.parametrize(
    ("protocol", "server"), [("grpc", grpc_backend), ("http", http_backend)]
)


@contextlib.asynccontextmanager
async def forwarding(endpoint: str, protocol: str) -> AsyncGenerator[tuple[Served, Telemetry]]:
    """A receiver that passes everything on to `endpoint`."""
    target = OtlpTarget.model_validate(
        {"endpoint": endpoint, "protocol": protocol, "headers": {"X-Key": "secret"}}
    )
    telemetry, stopping, has_begun = Telemetry(), asyncio.Event(), asyncio.Event()
    async with serving(keeps_unread=True) as served:
        way = Way(
            log=served.log,
            backends=Backends.configured(target, telemetry),
            telemetry=telemetry,
            has_begun=has_begun,
        )
        forwarder = Forwarder(way, clock=served.log.clock)
        run = asyncio.create_task(forwarder.run(stopping))
        await has_begun.wait()
        try:
            yield served, telemetry
        finally:
            stopping.set()
            await asyncio.wait((run,), timeout=20)


@contextlib.asynccontextmanager
async def forwarded(
    protocol: str, server: Server
) -> AsyncGenerator[tuple[Backend, Served, Telemetry]]:
    """The same, to a backend that is there."""
    async with (
        server() as backend,
        forwarding(backend.endpoint, protocol) as (served, telemetry),
    ):
        yield backend, served, telemetry


def spans_in(backend: Backend) -> list[Span]:
    requests = map(ExportTraceServiceRequest.FromString, backend.requests)
    return [each for request in requests for each in spans_of(request)]


def counted(telemetry: Telemetry, result: str) -> float:
    labels = {"result": result}
    return telemetry.registry.get_sample_value("spanwise_forward_requests_total", labels) or 0.0


@PROTOCOLS
async def test_the_backend_gets_the_bytes_and_the_headers(protocol: str, server: Server) -> None:
    async with forwarded(protocol, server) as (backend, served, telemetry):
        sent = [body(span(n, n, text="x" * n)) for n in range(1, 6)]
        for each in sent:
            assert (await export(served.target, each)).code is grpc.StatusCode.OK
        await eventually(lambda: len(spans_in(backend)) == 5)
        await eventually(lambda: counted(telemetry, "forwarded") == len(backend.requests))

        assert spans_in(backend) == [span(n, n, text="x" * n) for n in range(1, 6)]
        assert {headers["x-key"] for headers in backend.headers} == {"secret"}


@PROTOCOLS
async def test_each_answer_of_a_backend_is_understood_and_none_delays_a_sender(
    protocol: str, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    away, invalid = {"grpc": ("UNAVAILABLE", "INVALID_ARGUMENT"), "http": ("503", "400")}[protocol]
    async with forwarded(protocol, server) as (backend, served, telemetry):

        async def becomes(result: str, *sent: Span) -> None:
            if sent:
                assert (await export(served.target, body(*sent))).code is grpc.StatusCode.OK
            await eventually(lambda: counted(telemetry, result) == 1)

        backend.code = away
        await becomes("retried", span())
        backend.code = "OK"
        await becomes("forwarded")
        assert backend.requests == [body(span())]
        tries = backend.tries
        backend.code = invalid
        await becomes("refused", span(2))
        backend.code, backend.rejected = "OK", (2, "older than the retention")
        await becomes("partial", span(3, 1), span(3, 2), span(3, 3))

    assert backend.tries == tries + 2, "neither is tried again"
    spans = telemetry.registry.get_sample_value
    assert spans("spanwise_forward_spans_total", {"result": "lost"}) == 1 + 2
    assert spans("spanwise_forward_spans_total", {"result": "sent"}) == 1 + 1
    assert "older than the retention" in caplog.text


@PROTOCOLS
async def test_a_backend_that_was_never_there_costs_ingest_nothing_and_stops_in_time(
    protocol: str, server: Server
) -> None:
    async with server() as backend:
        endpoint = backend.endpoint
    async with forwarding(endpoint, protocol) as (served, telemetry):
        for number in range(1, 20):
            assert (await export(served.target, body(span(number)))).code is grpc.StatusCode.OK

        assert len(served.log.spans()) == 19
        assert counted(telemetry, "forwarded") == 0
    assert counted(telemetry, "refused") == 0


async def test_what_the_receiver_refuses_is_not_forwarded() -> None:
    async with forwarded("grpc", grpc_backend) as (backend, served, telemetry):
        assert (await export(served.target, b"\xff\xff")).code is grpc.StatusCode.INVALID_ARGUMENT
        assert (await export(served.target, body(span()))).code is grpc.StatusCode.OK
        await eventually(lambda: counted(telemetry, "forwarded") == 1)

        assert backend.requests == [body(span())]


@pytest.mark.parametrize(
    ("protocol", "server"), [("grpc", otlp_server.grpc_server), ("http", otlp_server.http_server)]
)
async def test_log_records_go_where_log_records_are_taken(protocol: str, server: LogsAt) -> None:
    request = ExportLogsServiceRequest()
    scope = request.resource_logs.add().scope_logs.add()
    scope.log_records.add(event_name="of no agent that we know")
    async with (
        server() as backend,
        forwarding(backend.endpoint, protocol) as (served, telemetry),
    ):
        said = await export(served.target, request.SerializeToString(), method=LOGS_SERVICE.method)
        await eventually(lambda: counted(telemetry, "forwarded") == 1)

    assert said.code is grpc.StatusCode.OK
    assert [each.event_name for each in backend.records()] == ["of no agent that we know"]
    assert served.log.spans() == [], "it is passed on as it came, also what is dropped here"


async def test_a_message_above_the_servers_size_goes_as_halves_and_delays_no_other() -> None:
    """A stock server takes 4 MiB, like a Collector's."""
    large, small = [span(1, at, text="x" * 900_000) for at in range(1, 7)], span(2, 1)
    async with (
        grpc_backend(largest=4 << 20) as backend,
        forwarding(backend.endpoint, "grpc") as (served, telemetry),
    ):
        assert (await export(served.target, body(*large))).code is grpc.StatusCode.OK
        assert (await export(served.target, body(small))).code is grpc.StatusCode.OK
        await eventually(lambda: len(spans_in(backend)) == 7)

    assert max(map(len, backend.requests)) <= 4 << 20
    assert counted(telemetry, "retried") == 0


@pytest.mark.parametrize(
    ("told", "waits"), [(3, 3.0), (10**15, LONGEST_WAIT), (-3, 0.0), (None, None)]
)
async def test_resource_exhausted_passes_only_with_the_time_to_come_back(
    told: int | None, waits: float | None
) -> None:
    async def export(_request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        status = Status(code=8)
        if told is not None:
            status.details.add().Pack(RetryInfo(retry_delay=Duration(seconds=told)))
        details = (("grpc-status-details-bin", status.SerializeToString()),)
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", details)
        return b""

    async with grpc_backend(export=export) as backend:
        transport = GrpcTransport(
            backend.endpoint, {}, service=TRACE_SERVICE, key="forward.endpoint", timeout=10.0
        )
        with pytest.raises(TooLarge if told is None else Retryable) as raised:
            await transport.export(b"")
        await transport.close()

    assert getattr(raised.value, "after", None) == waits
