"""A log record as a span: everything behind the receiver reads spans.

    event.name, time, attributes, body  ->  name, start = end, attributes + spanwise.log.event, spanwise.log.body

Its id is a digest of the record, so that a repeat is the same span. Where the record carries the id of a span, that is
its parent: its words are added to it.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from evaluators.dialects.turns.place import AgentEvent
from evaluators.model import JSON

EVENT_KEY = "spanwise.log.event"
"""The attribute that tells a made span; its value is the event's name."""
BODY_KEY = "spanwise.log.body"
_NAME_KEY = "event.name"
_DEPTH = 32
"""Arrays and lists nested deeper are cut, as `decode` cuts those of spans."""
_MOST_ATTRIBUTES, _MOST_PARTS = 1_000, 10_000
"""Attributes of a record that are looked at, and parts of one value: real records have tens of either."""
_T = TypeVar("_T")
_SCALARS = frozenset({"string_value", "bool_value", "int_value", "double_value"})
_NO_TRACE, _NO_SPAN = bytes(16), bytes(8)


def event_of(record: LogRecord, scope: str, resource: Mapping[str, JSON]) -> AgentEvent:
    """The record as its producer meant it: the attribute wins over the field, observed time stands in for none."""
    attributes = plain_attributes(record.attributes)
    name = attributes.get(_NAME_KEY)
    trace_id, span_id = ids_of(record)
    return AgentEvent(
        name=name if isinstance(name, str) and name else record.event_name,
        time_unix_nano=record.time_unix_nano or record.observed_time_unix_nano,
        scope=scope,
        attributes=attributes,
        body=plain(record.body) if record.HasField("body") else None,
        resource=resource,
        trace_id=trace_id.hex(),
        span_id=span_id.hex(),
    )


def ids_of(record: LogRecord) -> tuple[bytes, bytes]:
    """Trace id and span id that the record carries; empty where it has none, or none that is valid."""
    trace_id, span_id = record.trace_id, record.span_id
    if len(trace_id) != 16 or trace_id == _NO_TRACE:
        return b"", b""
    return trace_id, b"" if len(span_id) != 8 or span_id == _NO_SPAN else span_id


def made_span(record: LogRecord, event: AgentEvent, *, origin: bytes) -> Span:
    """The span of a record; its trace id is the record's, or empty. `origin`: whose record it is, part of its id."""
    digest = hashlib.sha256(origin + record.SerializeToString(deterministic=True)).digest()
    trace_id, lent_to = ids_of(record)
    span = Span(
        trace_id=trace_id,
        span_id=digest[:8],
        parent_span_id=lent_to or digest[8:16],
        name=event.name,
        start_time_unix_nano=event.time_unix_nano,
        end_time_unix_nano=event.time_unix_nano,
        attributes=record.attributes,
        dropped_attributes_count=record.dropped_attributes_count,
    )
    span.attributes.add(key=EVENT_KEY).value.string_value = event.name
    if record.HasField("body"):
        span.attributes.add(key=BODY_KEY).value.CopyFrom(record.body)
    return span


def plain_attributes(attributes: Sequence[KeyValue]) -> Mapping[str, JSON]:
    """Attributes as Python values, each when it is asked for: few of them say where a record belongs.

    Of more than 1,000 the others are not seen here; a value of more than 10,000 parts ends there.
    """
    return _Attributes(attributes)


class _Attributes(Mapping[str, JSON]):
    def __init__(self, attributes: Sequence[KeyValue]) -> None:
        self._found = {each.key: each for each in attributes[:_MOST_ATTRIBUTES]}

    def __getitem__(self, key: str) -> JSON:
        return plain(self._found[key].value)

    def get(self, key: str, default: Any = None) -> Any:
        """As every mapping's; that raises and catches an error for each attribute that is not there."""
        found = self._found.get(key)
        return default if found is None else plain(found.value)

    def __contains__(self, key: object) -> bool:
        return key in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def plain(value: AnyValue) -> JSON:
    """A value as Python has it; bytes, what is nested deeper than 32 and what is beyond 10,000 parts as None."""
    kind = value.WhichOneof("value")
    return getattr(value, kind) if kind in _SCALARS else _PlainValue().read(value, _DEPTH)


class _PlainValue:
    def __init__(self) -> None:
        self._left = _MOST_PARTS

    def read(self, value: AnyValue, depth: int) -> JSON:
        kind = value.WhichOneof("value")
        if kind in _SCALARS:
            return getattr(value, kind)
        if kind == "array_value" and depth:
            return [self.read(each, depth - 1) for each in self._some(value.array_value.values)]
        if kind == "kvlist_value" and depth:
            items = self._some(value.kvlist_value.values)
            return {each.key: self.read(each.value, depth - 1) for each in items}
        return None

    def _some(self, values: Sequence[_T]) -> Sequence[_T]:
        taken = values[: self._left]
        self._left -= len(taken)
        return taken
