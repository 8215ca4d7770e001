"""How an export request reaches an OTLP endpoint: gRPC or HTTP. One try each; the caller repeats.

`reachable` tries an endpoint with a request that holds nothing.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import ssl
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import ResourceLogs

from collector.base.errors import ConfigError, Permanent, Retryable, TooLarge
from collector.base.net import address, is_loopback
from collector.config.tree import OtlpTarget
from collector.otlp.signal import TRACE_SERVICE, OtlpService


def proxy_for(host: str, *, tls: bool) -> str | None:
    """The URL of the proxy that leads to `host`; None: it is reached directly."""
    if is_loopback(host) or proxy_bypass(host):
        return None
    found = getproxies_environment().get("https" if tls else "http")
    return found if found is None or "://" in found else f"http://{found}"


TRIAL_TIMEOUT = 5.0
"""Seconds that a trial waits for an answer: someone at a terminal waits as long."""
EMPTY = ExportLogsServiceRequest(resource_logs=[ResourceLogs()]).SerializeToString()
"""A request of one resource without a record, which every backend takes; one of traces is the same bytes."""
_BAD_REQUEST = frozenset({400, 422})
_TOO_LARGE = 413  # HTTP: Content Too Large
_BAD_CODES = frozenset({grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.OUT_OF_RANGE})


class Transport(Protocol):
    """Sends one request."""

    async def export(self, request: bytes) -> tuple[int, str]:
        """How many records or spans the other side can never accept, and its message about them.

        Raises:
            Retryable: not taken now. So is every refusal that an operator can put right (no access, no such method):
                the log keeps the signals meanwhile.
            TooLarge: the same, but its halves may be.
            Permanent: this request can never be taken.
        """
        ...

    async def close(self) -> None: ...


class GrpcTransport:
    """Over gRPC; TLS for `https://`, plain text for `http://` and for a bare host:port.

    Raises:
        ConfigError: `endpoint` is not one; the message begins with `key`, the setting that names it.
    """

    def __init__(
        self,
        endpoint: str,
        headers: Mapping[str, str],
        *,
        service: OtlpService,
        key: str,
        timeout: float,
    ) -> None:
        scheme, _, rest = endpoint.rpartition("://")
        target = rest.rstrip("/")
        if not target or scheme not in ("", "http", "https"):
            raise ConfigError(f'{key}: expected host:port, got "{endpoint}"')
        self._method = service.method
        self._target = target
        self._tls = scheme == "https"
        self._channel: grpc.aio.Channel | None = None
        self._metadata = tuple((key.lower(), value) for key, value in headers.items())
        self._timeout = timeout

    async def export(self, request: bytes) -> tuple[int, str]:
        try:
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self._open().unary_unary(
                self._method
            )
            answer = await call(request, metadata=self._metadata, timeout=self._timeout)
        except grpc.aio.AioRpcError as error:
            raise _meant(error) from error
        return _rejected(answer)

    async def close(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    def _open(self) -> grpc.aio.Channel:
        """The channel, made at the first call: no gRPC object may exist before the worker pool."""
        if self._channel is None:
            host = urlsplit(f"//{self._target}").hostname or ""
            proxy = proxy_for(host, tls=self._tls)
            options: list[tuple[str, int | str]] = [
                ("grpc.enable_http_proxy", int(proxy is not None))
            ]
            if proxy is not None:
                options.append(("grpc.http_proxy", proxy))
            self._channel = (
                grpc.aio.secure_channel(self._target, grpc.ssl_channel_credentials(), options)
                if self._tls
                else grpc.aio.insecure_channel(self._target, options)
            )
        return self._channel


class HttpTransport:
    """Over HTTP/1.1 with protobuf bodies, a connection per request.

    The service's path is added to the endpoint unless it ends with it.

    Raises:
        ConfigError: as `GrpcTransport`.
    """

    def __init__(
        self,
        endpoint: str,
        headers: Mapping[str, str],
        *,
        service: OtlpService,
        key: str,
        timeout: float,
    ) -> None:
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f'{key}: expected http(s)://host:port, got "{endpoint}"')
        self._host, self._port = parts.hostname, parts.port
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        path = parts.path.rstrip("/")
        self._path = path if path.endswith(service.path) else path + service.path
        self._headers = {**headers, "content-type": "application/x-protobuf"}
        self._timeout = timeout

    async def export(self, request: bytes) -> tuple[int, str]:
        try:
            async with asyncio.timeout(2 * self._timeout):
                status, body, wait = await asyncio.to_thread(self._post, request)
        except (OSError, http.client.HTTPException) as error:
            raise Retryable(f"{type(error).__name__}: {error}") from error
        if status // 100 == 2:
            return _rejected(body)
        text = f"HTTP {status}: {body[:200].decode(errors='replace')}"
        if status == _TOO_LARGE:
            raise TooLarge(text)
        raise Permanent(text) if status in _BAD_REQUEST else Retryable(text, after=wait)

    async def close(self) -> None:
        """See `Transport`."""

    def _post(self, request: bytes) -> tuple[int, bytes, float | None]:
        """Status, body, and the seconds of its `Retry-After`."""
        link, where, more = self._link()
        try:
            link.request("POST", where, body=request, headers=self._headers | more)
            answer = link.getresponse()
            wait = answer.getheader("retry-after", "")
            seconds = float(wait[:9]) if wait.isascii() and wait.isdigit() else None
            return answer.status, answer.read(1 << 20), seconds
        finally:
            link.close()

    def _link(self) -> tuple[http.client.HTTPConnection, str, dict[str, str]]:
        """A connection, what is asked for on it (of a proxy, the whole URL), and with which headers beside ours."""
        proxy = urlsplit(proxy_for(self._host, tls=self._tls is not None) or "")
        host, port = (proxy.hostname, proxy.port) if proxy.hostname else (self._host, self._port)
        if self._tls is None:
            link = http.client.HTTPConnection(host, port, timeout=self._timeout)
            if not proxy.hostname:
                return link, self._path, {}
            url = f"http://{address(self._host, self._port or 80)}{self._path}"
            return link, url, _credentials(proxy)
        link = http.client.HTTPSConnection(host, port, timeout=self._timeout, context=self._tls)
        if proxy.hostname:
            link.set_tunnel(self._host, self._port or 443, headers=_credentials(proxy))
        return link, self._path, {}


def _credentials(proxy: SplitResult) -> dict[str, str]:
    """The header for a proxy whose URL has a name and a password."""
    if proxy.username is None:
        return {}
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"proxy-authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _meant(error: grpc.aio.AioRpcError) -> Exception:
    """OTLP: RESOURCE_EXHAUSTED passes only where the answer says when; else the message is too large for the server."""
    text = f"{error.code().name}: {error.details()}"
    wait = _retry_info(error)
    if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and wait is None:
        return TooLarge(text)
    return Permanent(text) if error.code() in _BAD_CODES else Retryable(text, after=wait)


def _retry_info(error: grpc.aio.AioRpcError) -> float | None:
    """The seconds after which the other side wants the request again; None: it says nothing of that."""
    for key, value in error.trailing_metadata() or ():
        if key != "grpc-status-details-bin" or not isinstance(value, bytes):
            continue
        try:
            for detail in Status.FromString(value).details:
                info = RetryInfo()
                if detail.Unpack(info):
                    return info.retry_delay.seconds + info.retry_delay.nanos / 1e9
        except DecodeError:
            return None
    return None


def _rejected(answer: bytes) -> tuple[int, str]:
    """An answer that cannot be read is still a yes: its status said so. Traces and logs answer with the same fields."""
    try:
        partial = ExportLogsServiceResponse.FromString(answer).partial_success
    except DecodeError:
        return 0, ""
    return partial.rejected_log_records, partial.error_message


async def reachable(target: OtlpTarget, service: OtlpService, *, section: str) -> str | None:
    """None if the endpoint takes a request of this service that holds nothing; else the line that says why not.

    Raises:
        ConfigError: the endpoint of `section` is not one.
    """
    kind = GrpcTransport if target.protocol == "grpc" else HttpTransport
    headers = {key: value.get_secret_value() for key, value in target.headers.items()}
    endpoint = target.endpoint.rstrip("/").removesuffix(TRACE_SERVICE.path)
    key = f"{section}.endpoint"
    transport = kind(endpoint, headers, service=service, key=key, timeout=TRIAL_TIMEOUT)
    try:
        await transport.export(EMPTY)
    except (Retryable, Permanent) as error:
        checks = f"check it, {section}.protocol and {section}.headers"
        why = " ".join(str(error).split())
        return f"{key}: {target.endpoint} does not take what we send ({why}); {checks}"
    finally:
        await transport.close()
    return None
