"""OTLP over gRPC: raw bytes in, parsed by us, so that every fault gets the right code; and `grpc.health.v1.Health`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from socket import socket
from typing import cast
from urllib.parse import unquote

import grpc
import grpc.aio
from google.protobuf.message import DecodeError
from google.rpc.http_pb2 import HttpHeader

from collector.base.errors import ConfigError, Retryable
from collector.base.http_server import BearerTokens
from collector.base.net import address, connections, exporter_settings, sender
from collector.otlp.signal import DroppedSignal, OtlpSignal
from collector.receiver.answers import OK, bound, cannot_listen, trailers, unauthenticated
from collector.receiver.grpc_port import BACKLOG, PORT, WAITING, GrpcPort, Handover, Why, is_known
from collector.receiver.inflate import protobuf, sniff
from collector.receiver.intake import BODY_TIMEOUT, Intake
from collector.receiver.message_slots import MessageSlots
from collector.receiver.tls import Tls

KEY = "receiver.grpc"
_log = logging.getLogger(__name__)
_DECODE = protobuf(sniff)
MAX_CONNECTIONS = 2000
DROPPED_SLOTS = 2
"""Messages of signals that are dropped that are read at once."""
HEALTH_SLOTS = 4  # questions about health that are read at once
HEALTH_TIMEOUT = 5.0  # seconds in which such a question must be here whole; it has a few bytes
_SERVING = b"\x08\x01"  # HealthCheckResponse.status, field 1
_NOT_SERVING = b"\x08\x02"
_SERVICE_UNKNOWN = b"\x08\x03"


def options(max_request: int) -> list[tuple[str, int]]:
    return [
        # A little above our own limit, so that what is too large is counted by us.
        ("grpc.max_receive_message_length", max_request + max_request // 4 + (64 << 10)),
        ("grpc.max_send_message_length", 4 << 20),
        # Compressed messages reach the handler as they came: isal costs half of what grpc's zlib does.
        ("grpc.per_message_decompression", 0),
        ("grpc.so_reuseport", 0),
        ("grpc.max_concurrent_streams", 64),
        # Without these, connections that say nothing use up the process's files: then no listener accepts anything.
        ("grpc.max_allowed_incoming_connections", connections(MAX_CONNECTIONS, share=1 / 4)),
        ("grpc.server_handshake_timeout_ms", 10_000),
        # What grpc takes of a message before anyone reads it: little, and never more because the line is fast.
        ("grpc.http2.lookahead_bytes", 64 << 10),
        ("grpc.http2.bdp_probe", 0),
        # Collectors ping every 10 s; the defaults answer that with GOAWAY.
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        # Connections move on, so that balancing by connection works; grpc adds 10 % of jitter.
        ("grpc.max_connection_age_ms", 180_000),
        ("grpc.max_connection_age_grace_ms", 60_000),
    ]


@dataclass(slots=True, kw_only=True)
class GrpcServer:
    intake: Intake
    bearer: BearerTokens
    signals: Sequence[OtlpSignal]
    dropped: Sequence[DroppedSignal] = ()
    host: str
    port: int  # once it is bound, the real one
    max_request: int
    tls: Tls | None
    body_timeout: float = BODY_TIMEOUT
    extra_options: tuple[tuple[str, int], ...] = ()
    closed: Callable[[Why], None] = lambda _: None  # counts connections that were closed here
    http_port: Callable[[], int] = lambda: 4318  # named to who speaks HTTP/1
    _handover: Handover = field(default_factory=Handover)
    _door: GrpcPort | None = None
    _slots: MessageSlots = field(init=False)
    _unread: MessageSlots = field(init=False)
    _health: GrpcHealth | None = None
    _server: grpc.aio.Server | None = None

    def __post_init__(self) -> None:
        self._slots = MessageSlots(self.body_timeout)
        self._unread = MessageSlots(self.body_timeout, slots=DROPPED_SLOTS)

    async def start(self) -> None:
        """Bind and serve. Raises ConfigError: the port cannot be had."""
        listener = bound(KEY, self.host, self.port, backlog=BACKLOG)
        served = (*self.signals, *self.dropped)
        self._health = GrpcHealth(*(signal.service.name for signal in served))
        exports = [self._handler(signal) for signal in served]
        settings = dict(options(self.max_request)) | dict(self.extra_options)
        server = grpc.aio.server(
            handlers=[*exports, self._health.handler()],
            options=[*settings.items(), (PORT, self._handover)],
        )
        self.port = listener.getsockname()[1]
        is_ours = is_known() and self._takes_connections(server)
        if not is_ours:
            _log.warning(
                "This grpcio (%s) is not known: HTTP/1 requests on the gRPC port get no answer that can be read.",
                grpc.__version__,
            )
            listener.close()
            self._add_port(server, address(self.host, self.port))
        await server.start()
        self._server = server
        if is_ours:
            self._open(listener)

    def leave(self) -> None:
        """Tell those who ask for health that this is over; exports are served as before."""
        if self._health is not None:
            self._health.stop()

    async def stop(self, grace: float) -> None:
        self.leave()
        if self._door is not None:
            self._door.close()
            self._door = None
        if self._server is not None:
            await self._server.stop(grace)

    def _takes_connections(self, server: grpc.aio.Server) -> bool:
        try:
            self._add_port(server, PORT)
        except ConfigError:
            return False
        return self._handover.is_connected

    def _add_port(self, server: grpc.aio.Server, where: str) -> None:
        try:
            if self.tls is None:
                server.add_insecure_port(where)
            else:
                credentials = grpc.ssl_server_credentials(
                    [(self.tls.key, self.tls.cert)],
                    root_certificates=self.tls.client_ca,
                    require_client_auth=self.tls.client_ca is not None,
                )
                server.add_secure_port(where, credentials)
        except RuntimeError as error:
            raise cannot_listen(KEY, self.host, self.port, "grpc could not bind it") from error

    def _open(self, listener: socket) -> None:
        self._door = GrpcPort(
            listener=listener,
            hand=partial(self._handover.hand, listener=listener),
            refusal=self._refusal,
            closed=self.closed,
            most=connections(WAITING, share=1 / 16),
        )
        self._door.open()

    def _refusal(self) -> str:
        http = self.http_port()
        over_grpc, over_http = exporter_settings(
            host=self.host, grpc=self.port, http=http, tls=self.tls is not None
        )
        return (
            f"Port {self.port} takes OTLP over gRPC, and this request is HTTP/1. OTLP over HTTP goes to port {http}:"
            f" {over_http}. An exporter that speaks gRPC to this port: {over_grpc}."
        )

    def _handler(self, signal: OtlpSignal | DroppedSignal) -> grpc.GenericRpcHandler:
        async def export(
            _: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, bytes]
        ) -> bytes:
            if isinstance(signal, DroppedSignal):
                return await self._drop(signal, context)
            return await self._export(signal, context)

        # On the wire a call with one message like any other, but this handler runs before the message is read.

        return grpc.method_handlers_generic_handler(
            signal.service.name, {"Export": grpc.stream_unary_rpc_method_handler(export)}
        )

    def _sender(self, context: grpc.aio.ServicerContext[bytes, bytes]) -> str | None:
        authorization = _authorization(context) if self.bearer.required else None
        return self.bearer.sender(authorization, _address(context.peer()))

    async def _drop(
        self, signal: DroppedSignal, context: grpc.aio.ServicerContext[bytes, bytes]
    ) -> bytes:
        who = self._sender(context)
        answer = self.intake.drop(signal, "grpc", unauthenticated() if who is None else None)
        if who is None:
            await context.abort(answer.code, answer.message, trailers(answer))
        with suppress(Retryable):  # a call ends with its message; whether it came does not matter
            await self._unread.read(who, partial(_message, context))
        return b""

    async def _export(
        self,
        signal: OtlpSignal,
        context: grpc.aio.ServicerContext[bytes, bytes],
    ) -> bytes:
        who = self._sender(context)
        if who is None:
            answer = self.intake.deny(signal, "grpc", unauthenticated())
        else:
            answer = await self.intake.take(
                lambda: self._slots.read(who, partial(_message, context)),
                sender=who,
                signal=signal,
                transport="grpc",
                decode=_DECODE,
            )
        if answer.code != OK.code:
            await context.abort(answer.code, answer.message, trailers(answer))
        if answer is OK:
            return b""
        return signal.response(answer.rejected, answer.message).SerializeToString()


async def _message(context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
    """The one message of a call; empty if the client sent none.

    Not by the iterator that handlers are given: each has an asynchronous generator to be closed in a task of its own.
    """
    message = cast(object, await context.read())  # at the end EOF, which its types do not know
    return message if isinstance(message, bytes) else b""


@lru_cache(1024)
def _address(peer: str) -> str:
    """The address in grpc's `ipv4:127.0.0.1:4317`, `ipv6:%5B::1%5D:4317`."""
    return unquote(peer.partition(":")[2].rpartition(":")[0]).strip("[]")


def _authorization(context: grpc.aio.ServicerContext[bytes, bytes]) -> str | None:
    for key, value in context.invocation_metadata() or ():
        if key == "authorization" and isinstance(value, str):
            return value
    return None


class GrpcHealth:
    """`grpc.health.v1.Health`, by hand: two methods and two small messages need no generated code.

    Serving until `stop`; the services it knows are the whole server ("") and those named.
    """

    def __init__(self, *services: str) -> None:
        self._services = frozenset({"", *services})
        # Anyone may ask, and grpc would hold messages as large as an export's for whoever never ends one.
        self._slots = MessageSlots(HEALTH_TIMEOUT, slots=HEALTH_SLOTS)
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        self._stopped.set()

    def handler(self) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            "grpc.health.v1.Health",
            {
                "Check": grpc.stream_unary_rpc_method_handler(self._check),
                "Watch": grpc.stream_stream_rpc_method_handler(self._watch),
            },
        )

    def _status(self, service: str) -> bytes:
        if service not in self._services:
            return _SERVICE_UNKNOWN
        return _NOT_SERVING if self._stopped.is_set() else _SERVING

    async def _check(
        self, _: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, bytes]
    ) -> bytes:
        status = self._status(await self._service(context))
        if status is _SERVICE_UNKNOWN:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        return status

    async def _watch(
        self, _: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, bytes]
    ) -> AsyncIterator[bytes]:
        service = await self._service(context)
        yield self._status(service)
        if not self._stopped.is_set():
            await self._stopped.wait()
            yield self._status(service)

    async def _service(self, context: grpc.aio.ServicerContext[bytes, bytes]) -> str:
        """HealthCheckRequest is one string in field 1; so is HttpHeader's first field."""
        try:
            who = sender(_address(context.peer()))
            body = await self._slots.read(who, partial(_message, context))
            return HttpHeader.FromString(body).key
        except DecodeError:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not a HealthCheckRequest")
        except Retryable as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
