"""Signals as OTLP logs to any OpenTelemetry backend: events `gen_ai.evaluation.result`."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self, cast

import msgspec
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import SEVERITY_NUMBER_INFO, LogRecord

from collector.base.errors import Permanent, Undecodable
from collector.config.sinks import OtlpTarget
from collector.config.tree import Config
from collector.log.port import Position
from collector.otlp.client import reachable, transport_to
from collector.otlp.signal import LOGS_SERVICE
from collector.records.signal import Signal, decode_signal, unix_seconds
from collector.records.signal_batch import Published
from collector.sinks.port import Refused, pieces

MAX_REQUEST = 1 << 20  # bytes of one request: well below the 4 MiB that a stock Collector takes
EVENT = "gen_ai.evaluation.result"


class _Event(NamedTuple):
    position: Position
    signal: Signal
    record: LogRecord


class OtlpSink:
    """Exports each batch in requests of bounded size, in order; the log repeats what was not taken."""

    name: ClassVar[str] = "otlp"

    def __init__(self, settings: OtlpTarget, *, version: str = "", timeout: float = 10.0) -> None:
        """Export to `settings.endpoint`; `version` is Spanwise's, for the instrumentation scope.

        Raises ConfigError: the endpoint is not one.
        """
        section = f"sinks.{self.name}"
        self._transport = transport_to(settings, LOGS_SERVICE, section=section, timeout=timeout)
        self._version = version

    @classmethod
    def configured(cls, config: Config) -> Self | None:
        section = config.sinks.otlp
        return None if section is None else cls(section)

    @classmethod
    async def reachable(cls, config: Config) -> str | None:
        section = config.sinks.otlp
        return section and await reachable(section, LOGS_SERVICE, section="sinks.otlp")

    async def deliver(self, signals: Sequence[Published]) -> None:
        """Refused is what the other side calls invalid, and what is not a signal."""
        events, refused = _events(signals)
        for piece in pieces(events, lambda each: each.record.ByteSize(), largest=MAX_REQUEST):
            refused |= await self._export(piece)
        if refused:
            raise Refused(refused)

    async def close(self, deadline: float) -> None:
        async with asyncio.timeout(deadline):
            await self._transport.close()

    async def _export(self, events: Sequence[_Event]) -> dict[Position, str]:
        """Send; a request called invalid is halved until the bad event is alone."""
        body = request([(each.signal, each.record) for each in events], self._version)
        try:
            rejected, reason = await self._transport.export(body.SerializeToString())
        except Permanent as error:
            if len(events) == 1:
                return {events[0].position: str(error)}
            middle = len(events) // 2
            return await self._export(events[:middle]) | await self._export(events[middle:])
        # The answer only says how many: their number is exact, which ones they were is not known.
        return {each.position: f"rejected: {reason}" for each in events[:rejected]}


def _events(signals: Sequence[Published]) -> tuple[list[_Event], dict[Position, str]]:
    events: list[_Event] = []
    refused: dict[Position, str] = {}
    for each in signals:
        try:
            signal = decode_signal(each.json)
            events.append(_Event(each.position, signal, event(signal, observed=each.time)))
        except Undecodable as error:
            refused[each.position] = str(error)
    return events, refused


def event(signal: Signal, *, observed: float) -> LogRecord:
    """The event, parented to the scored span; `observed` = the log's append time, so that a repeat is the same.

    Raises Undecodable: the signal's time cannot be read.
    """
    return LogRecord(
        time_unix_nano=round(unix_seconds(signal.time) * 1e6) * 1000,
        observed_time_unix_nano=round(observed * 1e6) * 1000,
        severity_number=SEVERITY_NUMBER_INFO,
        event_name=EVENT,
        trace_id=_bytes(signal.trace_id, 16),
        span_id=_bytes(signal.span_id, 8),
        attributes=[
            KeyValue(key=key, value=_value(value))
            for key, value in (*_convention(signal).items(), *_flat("spanwise", _rest(signal)))
            if value is not None
        ],
    )


def request(signals: Iterable[tuple[Signal, LogRecord]], version: str) -> ExportLogsServiceRequest:
    """One export request: a resource per service, in order within each."""
    built = ExportLogsServiceRequest()
    scopes: dict[str, Any] = {}
    for signal, record in signals:
        if signal.service not in scopes:
            logs = built.resource_logs.add()
            logs.resource.attributes.append(
                KeyValue(key="service.name", value=_value(signal.service))
            )
            scopes[signal.service] = logs.scope_logs.add()
            scopes[signal.service].scope.name = "spanwise"
            scopes[signal.service].scope.version = version
        scopes[signal.service].log_records.append(record)
    return built


def _convention(signal: Signal) -> Mapping[str, Any]:
    """Exactly the convention's attributes. A session of one has no conversation of its own."""
    return {
        "gen_ai.evaluation.name": signal.evaluator,
        "gen_ai.evaluation.score.value": None if signal.score is None else float(signal.score),
        "gen_ai.evaluation.score.label": _label(signal),
        "gen_ai.evaluation.explanation": signal.explanation,
        "error.type": signal.error.type if signal.error else None,
        "gen_ai.conversation.id": None if signal.session_source == "trace" else signal.session_id,
    }


def _label(signal: Signal) -> str | None:
    if signal.success is None:
        return None
    return "pass" if signal.success else "fail"


_ELSEWHERE = frozenset(
    {"time", "trace_id", "span_id", "evaluator", "score", "explanation", "service"}
)
"""Fields that already are elsewhere in the event or on its resource."""


def _rest(signal: Signal) -> dict[str, Any]:
    fields = msgspec.structs.asdict(signal)
    kept = {key: value for key, value in fields.items() if key not in _ELSEWHERE}
    if signal.metadata:
        # As one JSON text: its keys are the evaluators' own, not attribute names.
        kept["metadata"] = msgspec.json.encode(signal.metadata).decode()
    return kept


def _flat(prefix: str, fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in fields.items():
        if value is None or value in ((), {}):
            continue
        if isinstance(value, msgspec.Struct):
            yield from _flat(f"{prefix}.{key}", msgspec.structs.asdict(value))
        else:
            yield f"{prefix}.{key}", value


def _value(value: Any) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int() if -(1 << 63) <= value < 1 << 63:
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case tuple():
            return _array(cast(tuple[Any, ...], value))
        case _:
            return AnyValue(string_value=str(value))


def _array(values: Sequence[Any]) -> AnyValue:
    return AnyValue(array_value=ArrayValue(values=[_value(each) for each in values]))


def _bytes(hex_id: str | None, length: int) -> bytes:
    """An id as OTLP carries it; empty if it is missing or malformed."""
    try:
        raw = bytes.fromhex(hex_id or "")
    except ValueError:
        return b""
    return raw if len(raw) == length else b""
