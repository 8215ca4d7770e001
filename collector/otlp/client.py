"""How an export request reaches an OTLP endpoint: gRPC or HTTP. One try each; the caller repeats.

`reachable` tries an endpoint with a request that holds nothing.
"""

from collections.abc import Mapping
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import ResourceLogs

from collector.base.errors import ConfigError, Permanent, RequestFailed, Retryable, TooLarge
from collector.base.http_client import LONGEST_WAIT, Client, HttpAnswer, HttpTarget, proxy_for
from collector.config.sinks import OtlpTarget
from collector.otlp.signal import TRACE_SERVICE, OtlpService

TRIAL_TIMEOUT = 5.0  # seconds that a trial waits for an answer: someone at a terminal waits as long
EMPTY = ExportLogsServiceRequest(resource_logs=[ResourceLogs()]).SerializeToString()
"""A request of one resource without a record, which every backend takes; one of traces is the same bytes."""
_PROTOBUF = "application/x-protobuf"
_PARTIAL = {"partialSuccess", "partial_success"}
_BAD_REQUEST = frozenset({400, 422})
_TOO_LARGE = 413  # HTTP: Content Too Large
_FAILED = 500  # HTTP: from here on the other side failed
_BAD_CODES = frozenset({grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.OUT_OF_RANGE})
_FAILED_CODES = frozenset(
    {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL, grpc.StatusCode.DATA_LOSS}
)


class Transport(Protocol):
    async def export(self, request: bytes) -> tuple[int, str]:
        """How many records or spans the other side can never accept, and its message about them.

        Raises Retryable: not taken now. So is every refusal that an operator can put right (no access, no such method):
        the log keeps the signals meanwhile. Raises TooLarge: the same, but its halves may be. Raises Permanent: this
        request can never be taken.
        """
        ...

    async def close(self) -> None: ...


class GrpcTransport:
    """Over gRPC; TLS for `https://`, plain text for `http://` and for a bare host:port.

    Raises ConfigError: `endpoint` is not one; the message begins with `key`, the setting that names it.
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
        try:
            return _rejected(answer)
        except DecodeError:  # gRPC's status said yes
            return 0, ""

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
    """Over HTTP/1.1 with protobuf bodies.

    The service's path is added to the endpoint unless it ends with it. Raises ConfigError: as `GrpcTransport`.
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
        path = parts.path.rstrip("/")
        self._path = path if path.endswith(service.path) else path + service.path
        self._headers = {**headers, "content-type": _PROTOBUF}
        self._client = Client(
            HttpTarget(
                section=key.rpartition(".")[0],
                endpoint=f"{parts.scheme}://{parts.netloc}",
                headers={},
                secrets=tuple(headers.values()),
                credentials=(),
                places=(key,),
            ),
            timeout=timeout,
        )

    async def export(self, request: bytes) -> tuple[int, str]:
        answer = await self._client.exchange("POST", self._path, request, self._headers)
        said = self._client.said(answer)
        if answer.status // 100 == 2:
            rejected = _taken(answer)
            if rejected is None:
                raise Retryable(f"HTTP {answer.status}, but not an answer of OTLP: {said}")
            return rejected
        text = f"HTTP {answer.status}: {said}"
        if answer.status == _TOO_LARGE:
            raise TooLarge(text)
        if answer.status in _BAD_REQUEST:
            raise Permanent(text)
        raise (RequestFailed if answer.status >= _FAILED else Retryable)(text, after=answer.after)

    async def close(self) -> None:
        await self._client.close()


def _taken(answer: HttpAnswer) -> tuple[int, str] | None:
    """See `Transport.export`; None: a 2xx of something else than a backend, such as the login page of a proxy.

    OTLP promises an Export...ServiceResponse in protobuf. Some backends send nothing, some the same in JSON.
    """
    if not answer.body.strip():
        return 0, ""
    if answer.media == "application/json":
        said = answer.fields
        return _rejected_json(said) if said is not None and not {*said} - _PARTIAL else None
    if answer.media not in ("", _PROTOBUF, "application/protobuf", "application/octet-stream"):
        return None
    try:
        return _rejected(answer.body)
    except DecodeError:
        return None


def _rejected_json(said: Mapping[str, Any]) -> tuple[int, str]:
    partial = next(iter(said.values()), None)
    if not isinstance(partial, dict):
        return 0, ""
    fields = cast("dict[str, Any]", partial)
    counts = [value for name, value in fields.items() if name.lower().startswith("rejected")]
    why = fields.get("errorMessage", fields.get("error_message"))
    return sum(int(each) for each in counts if str(each).isdecimal()), str(why or "")


def _meant(error: grpc.aio.AioRpcError) -> Exception:
    """OTLP: RESOURCE_EXHAUSTED passes only where the answer says when; else the message is too large for the server."""
    text = f"{error.code().name}: {error.details()}"
    wait = _retry_info(error)
    if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and wait is None:
        return TooLarge(text)
    if error.code() in _BAD_CODES:
        return Permanent(text)
    return (RequestFailed if error.code() in _FAILED_CODES else Retryable)(text, after=wait)


def _retry_info(error: grpc.aio.AioRpcError) -> float | None:
    """The seconds after which the other side wants the request again; None: it says nothing of that."""
    for key, value in error.trailing_metadata() or ():
        if key != "grpc-status-details-bin" or not isinstance(value, bytes):
            continue
        try:
            for detail in Status.FromString(value).details:
                info = RetryInfo()
                if detail.Unpack(info):
                    wait = info.retry_delay.seconds + info.retry_delay.nanos / 1e9
                    return min(max(0.0, wait), LONGEST_WAIT)
        except DecodeError:
            return None
    return None


def _rejected(answer: bytes) -> tuple[int, str]:
    """Traces, logs and metrics answer with the same fields. Raises DecodeError: it is not one."""
    partial = ExportLogsServiceResponse.FromString(answer).partial_success
    return partial.rejected_log_records, partial.error_message


def transport_to(
    target: OtlpTarget, service: OtlpService, *, section: str, timeout: float
) -> Transport:
    """The way to the endpoint of a section, which may name the path of traces. Raises ConfigError: it is not one."""
    kind = GrpcTransport if target.protocol == "grpc" else HttpTransport
    headers = {key: value.get_secret_value() for key, value in target.headers.items()}
    endpoint = target.endpoint.rstrip("/").removesuffix(TRACE_SERVICE.path)
    return kind(endpoint, headers, service=service, key=f"{section}.endpoint", timeout=timeout)


async def reachable(target: OtlpTarget, service: OtlpService, *, section: str) -> str | None:
    """None if the endpoint takes a request of this service that holds nothing; else the line that says why not.

    Raises ConfigError: the endpoint of `section` is not one.
    """
    transport = transport_to(target, service, section=section, timeout=TRIAL_TIMEOUT)
    try:
        await transport.export(EMPTY)
    except (Retryable, Permanent) as error:
        checks = f"check it, {section}.protocol and {section}.headers"
        why = " ".join(str(error).split())
        return f"{section}.endpoint: {target.endpoint} does not take what we send ({why}); {checks}"
    finally:
        await transport.close()
    return None
