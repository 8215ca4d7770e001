"""What a signal is about, and the signal that an outcome of it becomes. Pure: the same outcome is the same signal.

    {"id":"...", | schema_version ... started, | evaluator ... error}
                   once per subject                     per outcome

`SubjectSignals` encodes once what the signals of a subject share; a signal that is too large for that is made whole.
"""

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any, Literal

import msgspec

from collector.base.printable import escape_json_bytes
from collector.records.signal import (
    ALWAYS,
    MAX_BYTES,
    SCHEMA_VERSION,
    Coverage,
    Sampling,
    SessionTraces,
    Signal,
    rfc3339,
)
from collector.records.signal_batch import NewSignal, made, signal_header, subject_header
from evaluators.model import Closed, Outcome, Scope, SessionClosed, Trace


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What was scored: a trace, or a session as its window was then."""

    scope: Scope
    service: str
    session_id: str
    session_source: str
    agent: str
    agent_version: str | None
    seen: float  # log time at which its newest span was first seen: the signal's `time`
    revision: int
    closed: Literal[Closed, SessionClosed] | None
    trace_id: str | None = None
    span_id: str | None = None
    start: int = 0  # of the trace, as its session orders it; unix nanoseconds
    started: int = 0  # likewise, of the first revision of the trace, or of the session's first trace; 0: `start` is it
    first_trace: str | None = None
    newest_trace: str | None = None
    """The ends of the session, for tools that hang its scores on a trace; None: not known, or not a session."""
    more: bool = False  # of its session: see `SessionHead.more`

    @property
    def traces(self) -> SessionTraces | None:
        if self.first_trace is None or self.newest_trace is None:
            return None
        return SessionTraces(first=self.first_trace, newest=self.newest_trace)

    @property
    def began(self) -> str | None:
        """The start of its first span as the signal has it; None: the sender gave none."""
        nanoseconds = self.started or self.start
        return rfc3339(nanoseconds / 1e9) if nanoseconds else None


def shared_fields(source: msgspec.Struct | Trace, target: type[msgspec.Struct]) -> dict[str, Any]:
    """What is in both, by name: the fields of `target` that the source decides."""
    names, values_of = _shared(type(source), target)
    return dict(zip(names, values_of(source), strict=True))


@lru_cache
def _shared(
    source: type[msgspec.Struct | Trace], target: type[msgspec.Struct]
) -> tuple[tuple[str, ...], Callable[[object], tuple[Any, ...]]]:
    fields = (
        source.__struct_fields__
        if issubclass(source, msgspec.Struct)
        else source.__dataclass_fields__
    )
    names = tuple(name for name in fields if name in target.__struct_fields__)
    return names, attrgetter(*names)


def signal_of(
    subject: Subject, outcome: Outcome, id_: str, *, sampling: Sampling = ALWAYS
) -> Signal:
    """The signal of an outcome; `sampling`: by which its subject was judged."""
    values: tuple[Any, ...] = (
        id_,
        *_shared_values(subject),
        *_own_values(subject, outcome, sampling),
    )
    return Signal(**dict(zip(Signal.__struct_fields__, values, strict=True)))


_FIELDS = msgspec.structs.fields(Signal)
_END = 1 + next(at for at, each in enumerate(_FIELDS) if each.name == "started")
_Shared = msgspec.defstruct(
    "_Shared", [(each.name, each.type) for each in _FIELDS[1:_END]], gc=False
)
"""The fields of `Signal` behind its id that the subject decides."""
_Own = msgspec.defstruct("_Own", [(each.name, each.type) for each in _FIELDS[_END:]], gc=False)
_encode = msgspec.json.Encoder().encode
_of_subject = attrgetter(
    *("scope", "service", "agent", "agent_version", "trace_id", "span_id"),
    *("session_id", "session_source", "traces", "began"),
)


def _shared_values(subject: Subject) -> tuple[Any, ...]:
    return SCHEMA_VERSION, rfc3339(subject.seen), *_of_subject(subject)


def _own_values(subject: Subject, outcome: Outcome, sampling: Sampling) -> tuple[Any, ...]:
    coverage = outcome.coverage
    return (
        outcome.evaluator,
        outcome.version,
        outcome.method,
        outcome.state,
        outcome.reason,
        outcome.score,
        outcome.threshold,
        outcome.success,
        outcome.assumed,
        outcome.final,
        subject.revision,
        outcome.explanation,
        outcome.metadata,
        outcome.evidence,
        outcome.contradiction,
        outcome.truncated,
        None if coverage is None else Coverage(expected=coverage[0], present=coverage[1]),
        subject.closed,
        *sampling,
        outcome.judge,
        outcome.error,
    )


class SubjectSignals:
    __slots__ = ("_shared", "header", "subject")

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        shared = _Shared(*_shared_values(subject))
        self.header = subject_header(shared, subject.revision, subject.start)
        self._shared = b'",%b,' % escape_json_bytes(_encode(shared))[1:-1]

    def made(self, outcome: Outcome, id_: str, *, sampling: Sampling, first: bool) -> NewSignal:
        """The signal of an outcome. `sampling`: see `signal_of`; `first`: see `SignalHeader`."""
        own = _Own(*_own_values(self.subject, outcome, sampling))
        json = b"".join(
            (b'{"id":"', id_.encode(), self._shared, escape_json_bytes(_encode(own))[1:])
        )
        if len(json) > MAX_BYTES:
            signal = signal_of(self.subject, outcome, id_, sampling=sampling)
            return made(signal, first=first, start=self.subject.start)
        return NewSignal(self.header, signal_header(own, id_, len(json), first=first), json)
