"""The signal as bytes: JSON of at most 64 KiB, the CloudEvents 1.0 headers that go with it, and redaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeVar, cast
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from collector.errors import Undecodable
from collector.log.port import Headers
from collector.records.signal import Signal, SignalError

MAX_BYTES = 64 * 1024
INTERNAL = "spanwise_"
"""Prefix of headers between rooms: sinks do not send them out."""
FIRST = (f"{INTERNAL}first", b"1")
"""The header on the first final outcome of its (subject, evaluator), which counters count."""
_CONSTANT = (("content-type", b"application/json"), ("ce_specversion", b"1.0"))
_TEXTS = (1024, 64)
_LISTS = (64, 8, 0)
_T = TypeVar("_T")


class SignalHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of `Signal` that the API's index orders by."""

    id: str
    time: str
    scope: str
    service: str
    agent: str
    agent_version: str | None = None
    trace_id: str | None = None
    session_id: str
    session_source: str
    evaluator: str
    method: str
    outcome: str
    score: float | None = None
    final: bool = True
    revision: int = 0
    coverage: dict[str, int] | None = None


_encoder = msgspec.json.Encoder()
_signal = msgspec.json.Decoder(Signal)
_header = msgspec.json.Decoder(SignalHeader)


def encode_signal(signal: Signal) -> bytes:
    """The published JSON, fields in the order of `Signal`, at most 64 KiB: explanations are cut first."""
    value = _encoder.encode(signal)
    for name, cut in _CUTS:
        if len(value) <= MAX_BYTES:
            return value
        smaller = cut(signal)
        if smaller != signal:
            signal = _with_truncated(smaller, name)
            value = _encoder.encode(signal)
    return value


def decode_signal(value: bytes) -> Signal:
    """The signal in a record's value; fields that a newer version added are ignored.

    Raises:
        Undecodable: not a signal.
    """
    return _decoded(_signal, value)


def decode_signal_header(value: bytes) -> SignalHeader:
    """The fields of a signal that the API's index orders by.

    Raises:
        Undecodable: not a signal.
    """
    return _decoded(_header, value)


def _decoded(decoder: msgspec.json.Decoder[_T], value: bytes) -> _T:
    try:
        return decoder.decode(value)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise Undecodable(str(error)) from error


@lru_cache(maxsize=256)
def unix_seconds(time: str) -> float:
    """A signal's `time` as unix seconds.

    Raises:
        Undecodable: not RFC 3339.
    """
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError as error:
        raise Undecodable(f"time is not RFC 3339: {time}") from error


def signal_headers(signal: Signal, *, first: bool = False) -> Headers:
    """CloudEvents' headers of the Kafka binding (binary mode), and `traceparent` if a span was scored."""
    trace = signal.scope == "trace"
    subject = f"trace/{signal.trace_id}" if trace else f"session/{signal.session_id}"
    headers = (
        *_CONSTANT,
        ("ce_id", signal.id.encode()),
        ("ce_source", _source(signal.service)),
        ("ce_type", b"spanwise.signal.%b.v1" % signal.scope.encode()),
        ("ce_time", signal.time.encode()),
        ("ce_subject", subject.encode()),
    )
    if trace and signal.span_id:
        headers += (("traceparent", f"00-{signal.trace_id}-{signal.span_id}-01".encode()),)
    return (*headers, FIRST) if first else headers


@lru_cache(maxsize=1024)
def _source(service: str) -> bytes:
    return f"/agents/{quote(service, safe='')}".encode()


def redacted(signal: Signal) -> Signal:
    """The signal without explanation, error text and the texts of its metadata (`redaction.content: drop`)."""
    error = signal.error and SignalError(type=signal.error.type, message="")
    metadata = cast(Mapping[str, Any], _map_texts(signal.metadata, _no_text))
    return replace(signal, explanation=None, metadata=metadata, error=error)


def _no_text(_text: str) -> None:
    return None


def _map_texts(value: Any, change: Callable[[str], str | None]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        fields = cast(Mapping[str, Any], value)
        return {key: _map_texts(each, change) for key, each in fields.items()}
    if isinstance(value, (list, tuple)):
        return [_map_texts(each, change) for each in cast(list[Any], value)]
    return value


def _with_truncated(signal: Signal, name: str) -> Signal:
    names = signal.truncated.split(", ") if signal.truncated else []
    return signal if name in names else replace(signal, truncated=", ".join([*names, name]))


def _explanation(length: int) -> Callable[[Signal], Signal]:
    return lambda signal: replace(signal, explanation=(signal.explanation or "")[:length] or None)


def _metadata_texts(length: int) -> Callable[[Signal], Signal]:
    return lambda signal: replace(
        signal, metadata=_map_texts(signal.metadata, lambda text: text[:length])
    )


def _metadata_fields(length: int) -> Callable[[Signal], Signal]:
    return lambda signal: replace(
        signal, metadata={key: _shorter(value, length) for key, value in signal.metadata.items()}
    )


def _shorter(value: Any, length: int) -> Any:
    """The first `length` members of a list or an object; the newest of a session stand last, so it is the tail."""
    if isinstance(value, Mapping):
        fields = list(cast(Mapping[str, Any], value).items())
        return dict(fields[len(fields) - min(length, len(fields)) :])
    if isinstance(value, (list, tuple)):
        members = list(cast(list[Any], value))
        return members[len(members) - min(length, len(members)) :]
    return value


def _rest(signal: Signal) -> Signal:
    error = signal.error and SignalError(
        type=signal.error.type[:64], message=signal.error.message[:1024]
    )
    return replace(signal, error=error, evidence=signal.evidence[:64])


_CUTS: tuple[tuple[str, Callable[[Signal], Signal]], ...] = (
    *(("explanation", _explanation(length)) for length in _TEXTS),
    *(("metadata", _metadata_texts(length)) for length in _TEXTS),
    *(("metadata", _metadata_fields(length)) for length in _LISTS),
    ("evidence", _rest),
    ("metadata", lambda signal: replace(signal, metadata={})),
)
