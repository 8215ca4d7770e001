"""A receiver on free ports over a list, and raw clients for it."""

import asyncio
import time
from asyncio import Task
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import grpc
import grpc.aio
import httpx
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from collector.base.telemetry import Telemetry
from collector.config.tree import Grpc, Http, ReceiverConfig
from collector.otlp.signal import OtlpSignal
from collector.receiver.families import ReceiverFamilies
from collector.receiver.feedback.found import FeedbackReader
from collector.receiver.intake import Intake
from collector.receiver.receiver import Receiver
from collector.receiver.splitter import Splitter
from collector.records.feedback import FeedbackRules
from collector.records.otlp_signals import OTLP_SIGNALS
from tests.support.clocks import eventually as until
from tests.support.counted import counted
from tests.support.otlp import post
from tests.support.received_log import ReceivedLog

T = TypeVar("T")
METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


@dataclass(slots=True, kw_only=True)
class Served:
    """A running receiver and what is around it."""

    receiver: Receiver
    log: ReceivedLog
    telemetry: Telemetry

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.receiver.grpc_port}"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.receiver.http_port}/v1/traces"

    def count(self, transport: str, result: str) -> float:
        """spanwise_spans_received_total of these labels."""
        return self.counted("spans_received_total", transport=transport, result=result)

    def counted(self, name: str, **labels: str) -> float:
        return counted(self.telemetry, name, **labels)

    def dropped(self, transport: str) -> float:
        """spanwise_requests_dropped_total of metrics."""
        return self.counted("requests_dropped_total", transport=transport, signal="metrics")

    @asynccontextmanager
    async def holding(self, *sending: Coroutine[Any, Any, T]) -> AsyncGenerator[list[Task[T]]]:
        """While the log has these requests and has not written them; they are answered at the end."""
        self.log.gate = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in sending]
            await until(lambda: self.log.waiting == len(tasks))
            yield tasks
            self.log.gate.set()


@asynccontextmanager
async def connected(
    port: int, sent: bytes = b""
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A raw connection for a minute at most, over which this was sent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(60):
            writer.write(sent)
            yield reader, writer
    finally:
        writer.close()


@asynccontextmanager
async def serving(
    *,
    max_item: int = 1 << 20,
    keeps_unread: bool = False,
    host: str = "127.0.0.1",
    paths: tuple[str, ...] = ("/v1/traces",),
    cors: tuple[str, ...] = (),
    signals: Sequence[OtlpSignal] = OTLP_SIGNALS,
    joined: int = 0,
    behind: Callable[[], float] | None = None,
    feedback: FeedbackRules | None = None,
    **settings: Any,
) -> AsyncGenerator[Served]:
    """A receiver with these settings, stopped at the end."""
    log, telemetry = ReceivedLog(), Telemetry()
    receiver = Receiver(
        log=log,
        config=ReceiverConfig(
            grpc=Grpc(port=0), http=Http(host=host, port=0, paths=paths, cors=cors), **settings
        ),
        splitter=Splitter(
            max_item=max_item,
            joined=joined,
            keeps_unread=keeps_unread,
            feedback=None if feedback is None else FeedbackReader(feedback, time.monotonic),
        ),
        telemetry=telemetry,
        clock=time.monotonic,
        signals=signals,
        behind=behind,
    )
    await receiver.start()
    try:
        yield Served(receiver=receiver, log=log, telemetry=telemetry)
    finally:
        if log.gate is not None:
            log.gate.set()
        await receiver.stop(0.5)


def intake(
    log: ReceivedLog | None = None,
    telemetry: Telemetry | None = None,
    *,
    splitter: Splitter | None = None,
    **more: Any,
) -> Intake:
    """That of a receiver, without its ports; it takes requests of 1 MiB and spans as large."""
    usual: dict[str, Any] = {"max_request": 1 << 20, "clock": lambda: 0.0}
    return Intake(
        log=log or ReceivedLog(),
        splitter=splitter or Splitter(max_item=1 << 20),
        families=ReceiverFamilies(telemetry or Telemetry()),
        **{**usual, **more},
    )


@dataclass(slots=True, kw_only=True)
class Said:
    """What a gRPC call came to."""

    code: grpc.StatusCode
    message: str = ""
    body: bytes = b""
    trailers: dict[str, bytes | str] = field(default_factory=dict[str, bytes | str])

    @property
    def response(self) -> ExportTraceServiceResponse:
        return ExportTraceServiceResponse.FromString(self.body)

    @property
    def rejected(self) -> int:
        return self.response.partial_success.rejected_spans

    @property
    def status(self) -> Status:
        return Status.FromString(_binary(self.trailers["grpc-status-details-bin"]))

    def detail(self, kind: type[RetryInfo] | type[BadRequest]) -> RetryInfo | BadRequest | None:
        """The detail of this kind in the status, if there is one."""
        for packed in self.status.details:
            found = kind()
            if packed.Unpack(found):
                return found
        return None

    @property
    def delay(self) -> float | None:
        """The RetryInfo of the trailer that Python reads, in seconds."""
        raw = self.trailers.get("google.rpc.retryinfo-bin")
        if raw is None:
            return None
        wait = RetryInfo.FromString(_binary(raw)).retry_delay
        return wait.seconds + wait.nanos / 1e9


def _binary(value: bytes | str) -> bytes:
    assert isinstance(value, bytes)
    return value


async def export(
    target: str,
    body: bytes,
    *,
    compression: grpc.Compression = grpc.Compression.NoCompression,
    metadata: Iterable[tuple[str, str]] = (),
    method: str = METHOD,
    credentials: grpc.ChannelCredentials | None = None,
    timeout: float = 20.0,
) -> Said:
    """One raw gRPC call on a channel of its own."""
    options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
    channel = (
        grpc.aio.insecure_channel(target, options=options, compression=compression)
        if credentials is None
        else grpc.aio.secure_channel(target, credentials, options=options, compression=compression)
    )
    async with channel:
        return await call(channel, body, metadata=metadata, method=method, timeout=timeout)


async def exported(
    body: bytes,
    *,
    compression: grpc.Compression = grpc.Compression.NoCompression,
    method: str = METHOD,
    **settings: Any,
) -> tuple[Said, Served]:
    """One call of a receiver with these settings, and what it has then."""
    async with serving(**settings) as served:
        return await export(served.target, body, compression=compression, method=method), served


async def posted(
    content: bytes | AsyncIterator[bytes], headers: dict[str, str] | None = None, **settings: Any
) -> tuple[httpx.Response, Served]:
    """The same over HTTP; protobuf unless said otherwise."""
    async with serving(**settings) as served:
        return await post(served.url, content, headers), served


async def call(
    channel: grpc.aio.Channel,
    body: bytes,
    *,
    metadata: Iterable[tuple[str, str]] = (),
    method: str = METHOD,
    timeout: float = 20.0,
) -> Said:
    """One raw gRPC call."""
    export_bytes = channel.unary_unary(
        method, request_serializer=bytes, response_deserializer=bytes
    )
    try:
        reply = await export_bytes(body, metadata=tuple(metadata), timeout=timeout)
    except grpc.aio.AioRpcError as error:
        trailers = {str(key): value for key, value in error.trailing_metadata() or ()}
        return Said(code=error.code(), message=error.details() or "", trailers=trailers)
    return Said(code=grpc.StatusCode.OK, body=reply)


def sdk_spans(count: int, *, service: str = "bot") -> list[ReadableSpan]:
    """Finished spans of one trace, as the Python SDK makes them."""
    memory = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": service}), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("tests")
    with tracer.start_as_current_span("root"):
        for number in range(count - 1):
            with tracer.start_as_current_span(f"step {number}"):
                pass
    provider.shutdown()
    return list(memory.get_finished_spans())


async def through(exporter: SpanExporter, spans: list[ReadableSpan]) -> SpanExportResult:
    """Send spans with a real exporter, off the loop that serves it, and shut it down."""
    try:
        return await asyncio.to_thread(exporter.export, spans)
    finally:
        await asyncio.to_thread(exporter.shutdown)


def assert_refused(said: Said) -> None:
    """Retryable, and said so in both of the forms that clients read."""
    assert said.code is grpc.StatusCode.UNAVAILABLE
    assert said.detail(RetryInfo) is not None
    assert said.delay is not None
    assert 1.0 <= said.delay <= 4.0
