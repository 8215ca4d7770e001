"""The spans or log records of one export request: what tells each apart, and the request without some of them. Pure.

`kind` is `SpanHeads` for spans: parsing their attributes is most of what it costs.
"""

from collections.abc import Callable, Iterator, MutableSequence
from typing import Any

from google.protobuf.message import DecodeError, Message

from collector.otlp.span_head import SpanHeads

_GROUPS, _SCOPES, _ITEMS = 1, 2, 2
"""Numbers of the fields that hold them, the same for each signal of OTLP."""


def keys_of(request: bytes, kind: type[Message]) -> list[int | None]:
    """What each item is known by when it comes again, also in another request; None: nothing tells it apart.

    A span is known by its ids and its end, which no one on the way changes; a record by all of it.
    """
    message, key = _parsed(request, kind), _span_key if kind is SpanHeads else _record_key
    return [] if message is None else [key(each) for items in _lists(message) for each in items]


def only(request: bytes, kind: type[Message], wanted: Callable[[int], bool]) -> bytes:
    """The request with the items whose place is `wanted`; empty when none is."""
    message = _parsed(request, kind)
    if message is None:
        return request
    place, kept = 0, 0
    for items in _lists(message):
        chosen = [each for at, each in enumerate(items, place) if wanted(at)]
        place += len(items)
        kept += len(chosen)
        if len(chosen) < len(items):
            del items[:]
            items.extend(chosen)
    return message.SerializeToString() if kept else b""


def traces_of(request: bytes, kind: type[Message]) -> frozenset[bytes]:
    """The ids of its traces; of an item without one, nothing."""
    message = _parsed(request, kind)
    lists = () if message is None else _lists(message)
    return frozenset(each.trace_id for items in lists for each in items if each.trace_id)


def halves(
    request: bytes, kind: type[Message], *, of_traces: bool = False
) -> tuple[bytes, bytes] | None:
    """The request as two; None: it is one item, or cannot be read.

    `of_traces`: no trace is cut, and a request of one trace is not either. An item without a trace is its own group.
    """
    message = _parsed(request, kind)
    if message is None:
        return None
    ids = [each.trace_id if of_traces else b"" for items in _lists(message) for each in items]
    groups: dict[bytes | int, int] = {}
    group_of = [groups.setdefault(trace or at, len(groups)) for at, trace in enumerate(ids)]
    if len(groups) < 2:
        return None
    middle = len(groups) // 2
    return (
        only(request, kind, lambda at: group_of[at] < middle),
        only(request, kind, lambda at: group_of[at] >= middle),
    )


def _parsed(request: bytes, kind: type[Message]) -> Message | None:
    try:
        return kind.FromString(request)
    except DecodeError:
        return None


def _lists(message: Message) -> Iterator[MutableSequence[Any]]:
    for group in _field(message, _GROUPS):
        for scope in _field(group, _SCOPES):
            yield _field(scope, _ITEMS)


def _field(message: Message, number: int) -> MutableSequence[Any]:
    return getattr(message, message.DESCRIPTOR.fields_by_number[number].name)


def _span_key(span: Any) -> int | None:
    known = span.trace_id, span.span_id, span.end_time_unix_nano
    return hash(known) if all(known) else None


def _record_key(record: Any) -> int | None:
    if not (record.time_unix_nano or record.observed_time_unix_nano):
        return None
    return hash(record.SerializeToString(deterministic=True))
