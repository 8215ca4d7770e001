"""What a record changes: which one is newer, and what it says of its session. Pure."""

from datetime import datetime
from functools import lru_cache

import msgspec

from collector.api.store import QUESTION, SessionEntry, SignalEntry, TraceRow, micros, whole
from collector.log.port import Position
from collector.records.signal import HEADLINES
from collector.records.signal_batch import SignalHeader, SubjectHeader
from collector.records.trace_views import ListedTrace
from evaluators.coverage import low_coverage

LENGTH = 300  # characters of a reason; the signal has the whole


class _Reasons(msgspec.Struct):
    """What a session's signal without a score says of itself."""

    reason: str | None = None
    explanation: str | None = None
    coverage: dict[str, int] | None = None
    error: dict[str, str | None] | None = None


_decode = msgspec.json.Decoder(_Reasons).decode


def why_unscored(signal: bytes) -> str | None:
    """The explanation of a published signal without a score, else what its reason or its error says; None: nothing."""
    said = _decode(signal)
    if said.error is not None:
        return f"failed with {said.error.get('type')}"[:LENGTH]
    if said.explanation:
        return said.explanation[:LENGTH]
    if said.reason == "low_coverage" and said.coverage is not None:
        return low_coverage((said.coverage["expected"], said.coverage["present"]), {})
    return said.reason and said.reason.replace("_", " ")


def supersedes(revision: int, partition: int, offset: int, old: SignalEntry | TraceRow) -> bool:
    """The highest revision wins, then the later offset; any record wins over a trace that has none yet."""
    if old.offset is None or revision != old.revision:
        return old.offset is None or revision > old.revision
    return partition != old.partition or offset > old.offset


def is_shown(
    seen: ListedTrace, position: Position, old: TraceRow | None, *, is_other: bool
) -> bool:
    """Whether a trace takes the place of its id. A piece of another trace's turn is not a trace to show.

    Of two traces with one id, an agent's turn and what its command sent, the one that began first is shown.
    """
    if seen.trace.is_part and (old is None or is_other):
        return False
    start = whole(seen.trace.start_time_unix_nano)
    if old is not None and is_other and old.offset is not None and start != old.start:
        return start < old.start
    return old is None or supersedes(seen.revision, position.partition, position.offset, old)


def takes_its_place(
    subject: SubjectHeader, header: SignalHeader, partition: int, offset: int, old: SignalEntry
) -> bool:
    """At equal revision the final signal wins, whichever came first."""
    if subject.revision == old.revision and header.final != old.final:
        return header.final
    return supersedes(subject.revision, partition, offset, old)


def advance(session: SessionEntry, seen: ListedTrace, position: Position, *, reopens: bool) -> None:
    """The session after one of its traces; `reopens`: it goes on, if it had closed."""
    header = seen.trace
    started = header.start_time_unix_nano // 1000
    is_first = session.started is None or started <= session.started or session.question is None
    if header.input and is_first:
        session.question = header.input[:QUESTION]
    session.gaps = " ".join(header.gaps) or None
    session.started = started if session.started is None else min(session.started, started)
    session.last = max(session.last, whole(micros(seen.seen)))
    session.agent, session.agent_version = header.agent, header.agent_version
    session.session_source = header.session_source
    if position.offset > session.newest:
        session.newest = position.offset
        session.closed = None if reopens else session.closed


def note_scores(
    session: SessionEntry, subject: SubjectHeader, header: SignalHeader, json: bytes
) -> None:
    session.agent, session.agent_version = subject.agent, subject.agent_version
    session.last = max(session.last, whole(log_micros(subject.time)))
    if header.evaluator == "work_baseline":
        session.work = header.score
    name = HEADLINES.get(header.evaluator)
    if name is None:
        return
    if name == "reliability":
        session.reliability = header.score
        session.unscored = None if header.score is not None else why_unscored(json)
    else:
        session.consistency = header.score
    if header.coverage is not None:
        expected, present = header.coverage
        session.coverage = {"expected": expected, "present": present}


@lru_cache(maxsize=256)
def log_micros(time: str) -> int:
    """Log time in microseconds; 0 for a text that is not a time."""
    try:
        return micros(datetime.fromisoformat(time).timestamp())
    except ValueError:
        return 0
