"""The answers to export requests, and their form on each transport (OTLP specification, "Protocol details").

`partial_success` is for spans that can never be accepted. Every fault that may pass is UNAVAILABLE with a delay.
UNKNOWN and INTERNAL, which senders do not retry, are never used.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from socket import socket
from typing import Literal

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from google.rpc.status_pb2 import Status
from grpc import StatusCode as Code

from collector.base.errors import ConfigError, Retryable
from collector.base.net import address, bind
from collector.otlp.split import SplitRequest

MAX_MESSAGE = 1024
MAX_DELAY = 4.0
MOST_PATIENCE = 10.0
"""Seconds that the delay may grow by while scoring is behind."""


class NoRoom(Retryable):
    """Too many bytes are being taken in already."""


class OverShare(NoRoom):
    """They would fit, but this sender holds its share."""


class SlowSender(Retryable):
    """The body did not arrive in time."""


class HungUp(Retryable):
    """The sender closed its connection before its body had arrived."""


class Stopping(Retryable):
    """The process is about to end."""


class Behind(Retryable):
    """Scoring is so many seconds behind, of `receiver.max_score_lag`."""

    def __init__(self, lag: float, limit: float) -> None:
        super().__init__(
            f"the oldest trace has waited {lag:.0f} s for its scores (receiver.max_score_lag)"
        )
        self.delay = min(MOST_PATIENCE, 4.0 * lag / limit)
        """Seconds that a sender waits longer than after another refusal."""


Reason = Literal["no_room", "share", "slow", "hung_up", "stopping", "behind", "log", "fault"]


_REASONS: dict[type[Exception], Reason] = {
    OverShare: "share",
    NoRoom: "no_room",
    SlowSender: "slow",
    HungUp: "hung_up",
    Stopping: "stopping",
    Behind: "behind",
    Retryable: "log",
}


def reason(error: Exception) -> Reason:
    """Why a request is refused for now, as `spanwise_requests_refused_total` names it."""
    for kind, why in _REASONS.items():
        if isinstance(error, kind):
            return why
    return "fault"


def bound(key: str, host: str, port: int, *, backlog: int | None = None) -> socket:
    """A socket that is bound; `key` names the listener's section of the configuration. With `backlog` it listens.

    Raises ConfigError: the port cannot be had.
    """
    try:
        return bind(host, port, backlog=backlog)
    except OSError as error:
        raise cannot_listen(key, host, port, error.strerror or str(error)) from error


def cannot_listen(key: str, host: str, port: int, why: str) -> ConfigError:
    """The error of a listener that cannot be bound; `key` names its section of the configuration."""
    return ConfigError(
        f"{key}: cannot listen on {address(host, port)}: {why}; stop what listens there or set {key}.port"
    )


_HTTP = {
    Code.CANCELLED: 503,
    Code.DEADLINE_EXCEEDED: 503,
    Code.ABORTED: 503,
    Code.OUT_OF_RANGE: 503,
    Code.UNAVAILABLE: 503,
    Code.DATA_LOSS: 503,
    Code.OK: 200,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.INVALID_ARGUMENT: 400,
    Code.UNAUTHENTICATED: 401,
    Code.PERMISSION_DENIED: 403,
    Code.UNIMPLEMENTED: 404,
}


def http_status(code: Code) -> int:
    return _HTTP.get(code, 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverReply:
    code: Code = Code.OK
    message: str = ""
    delay: float | None = None
    """Seconds after which the sender may try again; None: it must not, or nothing is wrong."""
    bad_request: bool = False  # carry `message` as a BadRequest violation too
    rejected: int = 0  # items (spans) that can never be accepted; only with OK
    http: int | None = None  # the HTTP status where it is not the code's own

    @property
    def http_status(self) -> int:
        return self.http or http_status(self.code)

    @property
    def retry_after(self) -> int | None:
        """`delay` in whole seconds, for the header."""
        return None if self.delay is None else math.ceil(self.delay)


OK = ReceiverReply()


def taken(split: SplitRequest, items: str) -> ReceiverReply:
    """The request was accepted, but for the items that never can be; `items` is their name in the plural."""
    if not split.rejected:
        return OK
    message = f"{split.rejected} {items} rejected: {'; '.join(split.reasons)}"
    if split.rejected > len(split.reasons):
        message += "; ..."
    return ReceiverReply(rejected=split.rejected, message=message[:MAX_MESSAGE])


def refused(
    message: str, *, longer: float = 0.0, jitter: Callable[[], float] = random.random
) -> ReceiverReply:
    """Try again in 1 to 3 s: senders with a 10 s limit get several tries, and do not all come at the same time.

    `longer`: seconds more, where that would be too soon.
    """
    delay = min(MAX_DELAY, 1.0 + 2.0 * jitter()) + longer
    return ReceiverReply(code=Code.UNAVAILABLE, message=_short(message), delay=delay)


def undecodable(message: str) -> ReceiverReply:
    return ReceiverReply(code=Code.INVALID_ARGUMENT, message=_short(message), bad_request=True)


def too_large(message: str) -> ReceiverReply:
    """Above a limit: without RetryInfo, which makes RESOURCE_EXHAUSTED final."""
    return ReceiverReply(code=Code.RESOURCE_EXHAUSTED, message=_short(message), http=413)


def unauthenticated() -> ReceiverReply:
    return ReceiverReply(code=Code.UNAUTHENTICATED, message="a valid bearer token is needed")


def _short(message: str) -> str:
    return message[:MAX_MESSAGE]


def status(answer: ReceiverReply) -> Status:
    """The google.rpc.Status of an answer that is not OK."""
    reply = Status(code=answer.code.value[0], message=answer.message)
    if answer.bad_request:
        violation = BadRequest.FieldViolation(field="body", description=answer.message)
        _attach(reply, BadRequest(field_violations=[violation]))
    if answer.delay is not None:
        _attach(reply, retry_info(answer.delay))
    return reply


def retry_info(delay: float) -> RetryInfo:
    seconds, fraction = divmod(delay, 1.0)
    return RetryInfo(retry_delay=Duration(seconds=int(seconds), nanos=int(fraction * 1e9)))


def trailers(answer: ReceiverReply) -> tuple[tuple[str, bytes], ...]:
    """The gRPC trailers: Go reads the status details, Python's exporter only its own RetryInfo trailer."""
    details = (("grpc-status-details-bin", status(answer).SerializeToString()),)
    if answer.delay is None:
        return details
    return (*details, ("google.rpc.retryinfo-bin", retry_info(answer.delay).SerializeToString()))


def _attach(reply: Status, detail: BadRequest | RetryInfo) -> None:
    packed = AnyMessage()
    packed.Pack(detail)
    reply.details.append(packed)
