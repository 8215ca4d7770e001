import asyncio
import ssl
from collections.abc import Awaitable
from enum import IntEnum
from typing import Any

class CloseReason(IntEnum):
    CONNECTION_BROKEN = 0

class AIOKafkaConnection:
    _writer: asyncio.StreamWriter | None
    def send(self, request: object, expect_response: bool = ...) -> Awaitable[Any]: ...
    def connected(self) -> bool: ...
    def close(self, reason: CloseReason | None = ..., exc: Exception | None = ...) -> object: ...

async def create_conn(
    host: str,
    port: int,
    *,
    request_timeout_ms: int = ...,
    ssl_context: ssl.SSLContext | None = ...,
    security_protocol: str = ...,
    sasl_mechanism: str | None = ...,
    sasl_plain_username: str | None = ...,
    sasl_plain_password: str | None = ...,
) -> AIOKafkaConnection: ...
