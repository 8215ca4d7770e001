"""`grpc.health.v1.Health`, by hand: two methods and two small messages need no generated code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc
import grpc.aio
from google.protobuf.message import DecodeError
from google.rpc.http_pb2 import HttpHeader

SERVICE = "grpc.health.v1.Health"
_SERVING = b"\x08\x01"  # HealthCheckResponse.status, field 1
_NOT_SERVING = b"\x08\x02"
_SERVICE_UNKNOWN = b"\x08\x03"


class Health:
    """Serving until `stop`; the services it knows are the whole server ("") and those named."""

    def __init__(self, *services: str) -> None:
        self._services = frozenset({"", *services})
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Say NOT_SERVING from now on, also to those who watch."""
        self._stopped.set()

    def handler(self) -> grpc.GenericRpcHandler:
        """What a server registers."""
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Check": grpc.unary_unary_rpc_method_handler(self._check),
                "Watch": grpc.unary_stream_rpc_method_handler(self._watch),
            },
        )

    def _status(self, service: str) -> bytes:
        if service not in self._services:
            return _SERVICE_UNKNOWN
        return _NOT_SERVING if self._stopped.is_set() else _SERVING

    async def _check(self, body: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        status = self._status(await _service(body, context))
        if status is _SERVICE_UNKNOWN:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        return status

    async def _watch(
        self, body: bytes, context: grpc.aio.ServicerContext[bytes, bytes]
    ) -> AsyncIterator[bytes]:
        service = await _service(body, context)
        yield self._status(service)
        if not self._stopped.is_set():
            await self._stopped.wait()
            yield self._status(service)


async def _service(body: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> str:
    """HealthCheckRequest is one string in field 1; so is HttpHeader's first field."""
    try:
        return HttpHeader.FromString(body).key
    except DecodeError:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not a HealthCheckRequest")
