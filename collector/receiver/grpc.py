"""OTLP over gRPC: raw bytes in, parsed by us, so that every fault gets the right code; and `grpc.health.v1.Health`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import lru_cache, partial
from typing import cast
from urllib.parse import unquote

import grpc
import grpc.aio
from google.protobuf.message import DecodeError
from google.rpc.http_pb2 import HttpHeader

from collector.errors import Retryable
from collector.otlp.signal import OtlpSignal
from collector.receiver.answers import OK, bound, cannot_listen, trailers, unauthenticated
from collector.receiver.inflate import protobuf, sniff
from collector.receiver.intake import BODY_TIMEOUT, Intake
from collector.receiver.message_slots import MessageSlots
from collector.receiver.tls import Tls
from collector.runtime.http_server import BearerTokens
from collector.runtime.net import address, sender
from collector.runtime.open_files import connections

KEY = "receiver.grpc"
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_DECODE = protobuf(sniff)
MAX_CONNECTIONS = 2000
HEALTH_SLOTS = 4
"""Questions about health that are read at once."""
HEALTH_TIMEOUT = 5.0
_SERVING = b"\x08\x01"  # HealthCheckResponse.status, field 1
_NOT_SERVING = b"\x08\x02"
_SERVICE_UNKNOWN = b"\x08\x03"


def options(max_request: int) -> list[tuple[str, int]]:
    """Channel options of the server."""
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


class GrpcServer:
    """The gRPC half of the receiver."""

    def __init__(  # noqa: PLR0913 - its settings, one by one
        self,
        intake: Intake,
        bearer: BearerTokens,
        *,
        signals: Sequence[OtlpSignal],
        host: str,
        port: int,
        max_request: int,
        tls: Tls | None,
        body_timeout: float = BODY_TIMEOUT,
        extra_options: tuple[tuple[str, int], ...] = (),
    ) -> None:
        self._intake = intake
        self._signals = signals
        self._bearer = bearer
        self._host = host
        self._port = port
        self._tls = tls
        self._options = list((dict(options(max_request)) | dict(extra_options)).items())
        self._slots = MessageSlots(body_timeout)
        self._health: Health | None = None
        self._server: grpc.aio.Server | None = None

    @property
    def port(self) -> int:
        """The real port, once started."""
        return self._port

    async def start(self) -> None:
        """Bind and serve.

        Raises:
            ConfigError: the port cannot be had.
        """
        # grpc's own error does not name the cause, the socket's does.
        bound(KEY, self._host, self._port).close()
        self._health = Health(*(signal.service.name for signal in self._signals))
        exports = [self._handler(signal) for signal in self._signals]
        server = grpc.aio.server(handlers=[*exports, self._health.handler()], options=self._options)
        self._port = self._add_port(server)
        await server.start()
        self._server = server

    def leave(self) -> None:
        """Tell those who ask for health that this is over; exports are served as before."""
        if self._health is not None:
            self._health.stop()

    async def stop(self, grace: float) -> None:
        """Refuse new calls, give those in flight `grace` seconds."""
        self.leave()
        if self._server is not None:
            await self._server.stop(grace)

    def _add_port(self, server: grpc.aio.Server) -> int:
        where = address(self._host, self._port)
        try:
            if self._tls is None:
                return server.add_insecure_port(where)
            return server.add_secure_port(where, _credentials(self._tls))
        except RuntimeError as error:
            raise cannot_listen(KEY, self._host, self._port, "grpc could not bind it") from error

    def _handler(self, signal: OtlpSignal) -> grpc.GenericRpcHandler:
        async def export(
            _: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, bytes]
        ) -> bytes:
            return await self._export(signal, context)

        # On the wire a call with one message like any other, but this handler runs before the message is read.

        return grpc.method_handlers_generic_handler(
            signal.service.name, {"Export": grpc.stream_unary_rpc_method_handler(export)}
        )

    async def _export(
        self,
        signal: OtlpSignal,
        context: grpc.aio.ServicerContext[bytes, bytes],
    ) -> bytes:
        authorization = _authorization(context) if self._bearer.required else None
        who = self._bearer.sender(authorization, _address(context.peer()))
        if who is None:
            answer = self._intake.deny(signal, "grpc", unauthenticated())
        else:
            answer = await self._intake.take(
                lambda: self._slots.read(who, partial(_message, context)),
                sender=who,
                signal=signal,
                transport="grpc",
                decode=_DECODE,
            )
        if answer.code != OK.code:
            await context.abort(_CODES[answer.code], answer.message, trailers(answer))
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


def _credentials(tls: Tls) -> grpc.ServerCredentials:
    return grpc.ssl_server_credentials(
        [(tls.key, tls.cert)],
        root_certificates=tls.client_ca,
        require_client_auth=tls.client_ca is not None,
    )


class Health:
    """`grpc.health.v1.Health`, by hand: two methods and two small messages need no generated code.

    Serving until `stop`; the services it knows are the whole server ("") and those named.
    """

    def __init__(self, *services: str) -> None:
        self._services = frozenset({"", *services})
        # Anyone may ask, and grpc would hold messages as large as an export's for whoever never ends one.
        self._slots = MessageSlots(HEALTH_TIMEOUT, slots=HEALTH_SLOTS)
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Say NOT_SERVING from now on, also to those who watch."""
        self._stopped.set()

    def handler(self) -> grpc.GenericRpcHandler:
        """What a server registers."""
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
