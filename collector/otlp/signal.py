"""What the receiver must know of an OTLP signal to take it in.

collector/records/otlp_signals.py lists the signals that are taken.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from google.protobuf.message import Message

from collector.otlp.split import SplitRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class OtlpService:
    """Where a signal's export requests go, on each transport."""

    name: str  # the gRPC service; its method is `Export`
    path: str  # the HTTP path

    @property
    def method(self) -> str:
        return f"/{self.name}/Export"


TRACE_SERVICE = OtlpService(
    name="opentelemetry.proto.collector.trace.v1.TraceService", path="/v1/traces"
)
LOGS_SERVICE = OtlpService(
    name="opentelemetry.proto.collector.logs.v1.LogsService", path="/v1/logs"
)
METRICS_SERVICE = OtlpService(
    name="opentelemetry.proto.collector.metrics.v1.MetricsService", path="/v1/metrics"
)


class Split(Protocol):
    """Splits one export request into the records that the log takes."""

    def __call__(self, request: bytes, *, max_item: int, joined: int = 0) -> SplitRequest:
        """Items above `max_item` bytes are rejected; pieces are joined to records of at most `joined` bytes.

        Raises Undecodable: the request is not valid OTLP.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OtlpSignal:
    """One OTLP signal: how its requests arrive, how they are split, where the pieces go."""

    items: str  # what a request holds, in the plural: counted in `spanwise_<items>_received_total`
    service: OtlpService
    request: type[Message]  # the export request: its field names are those of OTLP/JSON
    response: Callable[[int, str], Message]
    """The answer to a request that was taken: number of rejected items, and why."""
    split: Split
    topic: str  # the topic of the log that holds the pieces
    recordings: tuple[str, ...]
    """Suffixes of files that hold its requests (collector/service/recordings.py)."""
    drops: bool = False  # whether items may be of no use, and are dropped before the log
    large: int = 1 << 20
    """Bytes above which a request is decoded and split in a thread, one at a time, so that others are served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedSignal:
    """One OTLP signal that is answered OK and dropped unread: SDKs send it to where their traces go."""

    name: str  # counted as this in `spanwise_requests_dropped_total`
    service: OtlpService
    response: type[Message]  # the answer, empty
