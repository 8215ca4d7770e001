"""Topic `signals`: its records, and the one way to read them.

On a log of one process a record holds all signals of one step of a session, and takes as many offsets:

    SignalBatch   subjects: each with the headers of its signals   lines: their JSON, one per line, as it is published

A shared log has one signal per record, its JSON with CloudEvents headers, for anyone to read; so had logs of one
process before. `signals_in` reads both. The JSON of a signal and its id are the same either way.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from collector.base.errors import Undecodable
from collector.log.port import MAX_COUNT, SIGNALS, Headers, New, Position, Record
from collector.records.cloud_events import FIRST, event_headers, start_in
from collector.records.codec import decode, encode
from collector.records.signal import Signal, encode_signal

MAX_LINES = 256 << 10  # bytes of JSON from which a record takes no further signal


class SubjectHeader(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the signals of one subject have in common, as `Signal` has it. New fields are at the end."""

    scope: str
    service: str
    agent: str
    session_id: str
    session_source: str
    time: str
    revision: int = 0
    agent_version: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    start: int = 0  # of the trace that was scored, unix nanoseconds; 0 for a session. The signal itself has no start.


class SignalHeader(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one signal says in numbers and names, without texts that may be content. New fields are at the end."""

    id: str
    evaluator: str
    method: str
    outcome: str
    final: bool
    score: float | None = None
    threshold: float | None = None
    success: bool | None = None
    first: bool = False
    """It is the first final outcome of its (subject, evaluator), which counters count."""
    reason: str | None = None
    coverage: tuple[int, int] | None = None
    """Of the scores that a session formula reads: how many were expected, how many are present."""
    error: str | None = None  # the type of its error
    size: int = 0  # bytes of its JSON
    sample: str = "base"
    sample_probability: float = 1.0
    again: float | None = None  # the score of the judge's second answer


class OfSubject(msgspec.Struct, frozen=True, array_like=True):
    """A subject and its signals, in order."""

    subject: SubjectHeader
    signals: tuple[SignalHeader, ...]


class SignalBatch(msgspec.Struct, frozen=True, array_like=True, tag="batch"):
    """All signals of one step, in order. An array, so that its first byte is not that of a signal's JSON."""

    subjects: tuple[OfSubject, ...]
    lines: memoryview  # the JSON of each signal and a line break


class Published(msgspec.Struct, frozen=True, gc=False):
    subject: SubjectHeader
    header: SignalHeader
    json: bytes  # as it is published, without a line break
    position: Position  # its own, in a record of many, too
    time: float  # append time of its record


class NewSignal(msgspec.Struct, frozen=True, gc=False):
    """A signal that is to be written."""

    subject: SubjectHeader
    header: SignalHeader
    json: bytes


_LOOSE: Mapping[str, type] = {"scope": str, "method": str, "outcome": str, "sample": str}
"""Names that a newer version has are taken as they are."""
_HEADER_FIELDS = {*SubjectHeader.__struct_fields__, *SignalHeader.__struct_fields__, "judge"}
_HeaderFields = msgspec.defstruct(
    "_HeaderFields",
    [
        (each.name, _LOOSE.get(each.name, each.type), each.default)
        for each in msgspec.structs.fields(Signal)
        if each.name in _HEADER_FIELDS
    ],
    frozen=True,
    kw_only=True,
)
"""The fields of `Signal` that the headers have."""
_batch = msgspec.msgpack.Decoder(SignalBatch)
_fields = msgspec.json.Decoder(_HeaderFields)
_JSON = b"{"


def made(signal: Signal, *, first: bool = False, start: int = 0) -> NewSignal:
    """A signal, ready to be written; `first` and `start`: see the headers."""
    return _made(signal, encode_signal(signal), first=first, start=start)


def made_before(json: bytes, headers: Headers) -> NewSignal:
    """A signal whose JSON was made before, and the headers of a record of its own.

    Raises Undecodable: it is not a signal.
    """
    return _made(decode(_fields, json), json, first=FIRST in headers, start=start_in(headers))


def headers_of(signal: NewSignal) -> Headers:
    return _headers(signal, start=signal.subject.start, first=signal.header.first)


def public_headers(signal: Published) -> Headers:
    """The headers with which it leaves the log: CloudEvents'."""
    return _headers(signal)


def signal_records(signals: Sequence[NewSignal], *, joined: bool) -> list[New]:
    """The records of the signals of one session; `joined`: in as few as can be, on a log that counts offsets."""
    return [*batch_records(signals)] if joined else [single_record(each) for each in signals]


def single_record(signal: NewSignal) -> New:
    key = signal.subject.session_id.encode()
    return New(topic=SIGNALS, key=key, value=signal.json, headers=headers_of(signal))


def batch_records(signals: Sequence[NewSignal]) -> Iterator[New]:
    """The records of the signals of one session on a log that counts offsets: one, unless they are very large."""
    begin = size = 0
    for end, each in enumerate(signals):
        more = each.header.size + 1
        if end > begin and (size + more > MAX_LINES or end - begin >= MAX_COUNT):
            yield _batch_record(signals[begin:end])
            begin, size = end, 0
        size += more
    if signals:
        yield _batch_record(signals[begin:])


def signals_in(record: Record) -> Sequence[Published]:
    """The signals of a record of the topic, in order, each with its own position.

    Raises Undecodable: it holds no signals.
    """
    return signals_of(record, groups_in(record))


class SignalGroup(NamedTuple):
    """Signals of one subject in a record, which follow one another."""

    subject: SubjectHeader
    headers: tuple[SignalHeader, ...]
    first: int  # offset of the first of them
    lines: memoryview  # their JSON, one per line

    def jsons(self) -> list[bytes]:
        """The JSON of each, without a line break."""
        if len(self.headers) == 1:
            return [bytes(self.lines[: self.headers[0].size])]
        found: list[bytes] = []
        at = 0
        for header in self.headers:
            found.append(bytes(self.lines[at : at + header.size]))
            at += header.size + 1
        return found


def groups_in(record: Record) -> list[SignalGroup]:
    """The signals of a record as `signals_in` has them, by subject; of a record of many no JSON is read or copied.

    Raises Undecodable: it holds no signals.
    """
    if record.value[:1] == _JSON:
        alone = made_before(record.value, record.headers)
        lines = memoryview(record.value)
        return [SignalGroup(alone.subject, (alone.header,), record.position.offset, lines)]
    batch = decode(_batch, record.value)
    offset, at, lines = record.first, 0, batch.lines
    groups: list[SignalGroup] = []
    for each in batch.subjects:
        subject, headers = each.subject, each.signals
        end = at + sum([signal.size for signal in headers]) + len(headers)
        groups.append(SignalGroup(subject, headers, offset, lines[at:end]))
        offset, at = offset + len(headers), end
    if at != len(lines) or offset != record.position.offset + 1:
        raise Undecodable(f"{record.count} signals of {len(lines)} bytes were expected")
    return groups


def signals_of(record: Record, groups: Iterable[SignalGroup]) -> list[Published]:
    (topic, partition, _), time = record.position, record.time
    return [
        Published(group.subject, header, json, Position(topic, partition, offset), time)
        for group in groups
        for offset, (header, json) in enumerate(
            zip(group.headers, group.jsons(), strict=True), group.first
        )
    ]


def lines_of(record: Record, groups: Iterable[SignalGroup]) -> bytes:
    lines = b"".join([group.lines for group in groups])
    return lines + b"\n" if record.value[:1] == _JSON else lines


def _headers(signal: NewSignal | Published, *, start: int = 0, first: bool = False) -> Headers:
    subject = signal.subject
    return event_headers(
        signal.header.id,
        scope=subject.scope,
        service=subject.service,
        subject=subject.trace_id if subject.scope == "trace" else subject.session_id,
        span_id=subject.span_id,
        time=subject.time,
        start=start,
        first=first,
    )


def _batch_record(signals: Sequence[NewSignal]) -> New:
    batch = SignalBatch(
        subjects=tuple(_grouped(signals)),
        lines=memoryview(b"\n".join([*(each.json for each in signals), b""])),
    )
    key = signals[0].subject.session_id.encode()
    return New(topic=SIGNALS, key=key, value=encode(batch), count=len(signals))


def _grouped(signals: Iterable[NewSignal]) -> Iterator[OfSubject]:
    subject: SubjectHeader | None = None
    headers: list[SignalHeader] = []
    for each in signals:
        if each.subject is not subject:
            if subject is not None and each.subject != subject:
                yield OfSubject(subject, tuple(headers))
                headers = []
            subject = each.subject
        headers.append(each.header)
    if subject is not None:
        yield OfSubject(subject, tuple(headers))


_subject_values = attrgetter(*SubjectHeader.__struct_fields__[:6])
_version_and_ids = attrgetter("agent_version", "trace_id", "span_id")
_header_values = attrgetter(*SignalHeader.__struct_fields__[1:8])


def _made(signal: Any, json: bytes, *, first: bool, start: int) -> NewSignal:
    header = signal_header(signal, signal.id, len(json), first=first)
    return NewSignal(subject_header(signal, signal.revision, start), header, json)


def subject_header(signal: Any, revision: int, start: int) -> SubjectHeader:
    """`signal`: whatever has the fields of a `Signal` that the subject decides."""
    ids = _version_and_ids(signal)
    values: tuple[Any, ...] = (*_subject_values(signal), revision, *ids, start)
    return SubjectHeader(*values)


def signal_header(signal: Any, id_: str, size: int, *, first: bool) -> SignalHeader:
    """`signal`: whatever has the fields of a `Signal` that the outcome decides."""
    coverage, error, judge = signal.coverage, signal.error, signal.judge
    values: tuple[Any, ...] = (
        id_,
        *_header_values(signal),
        first,
        signal.reason,
        None if coverage is None else (coverage.expected, coverage.present),
        None if error is None else error.type,
        size,
        signal.sample,
        signal.sample_probability,
        None if judge is None else judge.again,
    )
    return SignalHeader(*values)
