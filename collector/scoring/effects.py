"""The values that the pure part of scoring returns, and the batch in which they become records of the log.

Here alone the values that scoring decides are encoded, redacted, keyed and put in a partition: signals first, then
state; the commits follow (rule 4).
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import msgspec

from collector.log.port import SESSIONS, TRACES, New
from collector.records.codec import encode
from collector.records.more import AskRecord, MoreRecord
from collector.records.sessions import (
    SessionAwaited,
    SessionHead,
    SessionsTopic,
    SessionTurn,
    awaited_key,
    more_key,
    session_key,
    turn_key,
)
from collector.records.signal import ALWAYS, Sampling, Signal, redacted
from collector.records.signal_batch import NewSignal, made, signal_records
from collector.records.subject import Subject, SubjectSignals, signal_of
from collector.records.trace_views import SummarisedTrace
from collector.records.traces import (
    RunawayRecord,
    RunRecord,
    SessionRecord,
    VerdictRecord,
    WorkRecord,
)
from collector.scoring.sliding_window import Placement
from evaluators.model import Outcome, SessionClosed

Report = SessionRecord | RunRecord | VerdictRecord | AskRecord
"""Records that scoring adds to topic `traces`, for the other rooms and for itself."""
LARGE, LARGE_BYTES = 4096, 8 << 20
"""Records, and bytes of their values, of a batch that is written before more is decided."""


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """A signal to publish: an outcome of a subject."""

    subject: Subject
    outcome: Outcome
    id: str
    is_first: bool
    """It is the first final outcome of its (subject, evaluator), which counters count."""
    sampling: Sampling = ALWAYS  # by which its subject was judged

    @property
    def signal(self) -> Signal:
        return signal_of(self.subject, self.outcome, self.id, sampling=self.sampling)


class Tombstone(msgspec.Struct, frozen=True, kw_only=True):
    state: SessionsTopic


Change = SessionsTopic | Report | Tombstone
"""A record is put in place of the earlier one of its key; a `Tombstone` removes it."""


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a partition's sessions. All signals and work of a batch are written before all its changes (rule 4).

    Puts and drops are one sequence, because a crash may cut the write after any of them.
    """

    publish: tuple[Publication, ...] = ()
    work: tuple[WorkRecord | RunawayRecord, ...] = ()
    """What is ranked of a session that changed or closed, and a trace that may run away."""
    changes: tuple[Change, ...] = ()
    closed: tuple[str, SessionClosed] | None = None  # (service, reason) of the session that closed


class PlacedTrace(msgspec.Struct, frozen=True, kw_only=True):
    """A trace in its session, which finishes it before it takes another one."""

    key: bytes  # of the session
    trace: SummarisedTrace
    entry: SessionTurn
    earlier: SessionTurn | None  # its earlier revision in the window
    is_new: bool  # it opened the session
    placement: Placement
    number: int | None  # its place among the turns, 1-based; None: it is not a turn
    lacking: tuple[SessionTurn, ...] = ()
    """Turns whose sketches it, or a turn after it, is compared by, and which are in the log alone."""

    @property
    def known(self) -> Collection[str] | None:
        """Evaluators that had a final outcome of the trace before; None: a revision whose earlier one has left."""
        if self.earlier is not None:
            return {*self.earlier.counted, *self.earlier.signal_ids}
        return () if self.entry.revision == 0 else None


@dataclass(slots=True, kw_only=True)
class WriteBatch:
    """Filled by effects in order, emptied only by a write that succeeded."""

    joined: bool  # all signals of a step are one record; the log `counts_offsets`
    redact: bool = False  # signals leave without texts (`redaction.content: drop`)
    _signals: list[New] = field(default_factory=list[New])
    _work: list[New] = field(default_factory=list[New])
    _changes: list[New] = field(default_factory=list[New])
    _size: int = 0

    @property
    def is_large(self) -> bool:
        count = len(self._signals) + len(self._work) + len(self._changes)
        return count >= LARGE or self._size >= LARGE_BYTES

    def add(self, effects: Effects, *, partition: int) -> None:
        signals = publishable(effects.publish, redact=self.redact)
        for each in signal_records(signals, joined=self.joined):
            self._append(self._signals, each)
        for each in effects.work:
            self._append(self._work, work_record(each))
        self.add_changes(effects.changes, partition=partition)

    def add_changes(self, changes: Iterable[Change], *, partition: int) -> None:
        for each in changes:
            self._append(self._changes, change_record(each, partition))

    def forget(self, partition: int) -> None:
        """The partition has another owner now, who alone changes its state."""
        self._changes = [each for each in self._changes if each.partition != partition]

    @property
    def records(self) -> list[New]:
        return [*self._signals, *self._work, *self._changes]

    def clear(self) -> None:
        self._signals.clear()
        self._work.clear()
        self._changes.clear()
        self._size = 0

    def _append(self, records: list[New], record: New) -> None:
        records.append(record)
        self._size += len(record.value) if isinstance(record.value, bytes) else 0


def publishable(publish: Iterable[Publication], *, redact: bool) -> list[NewSignal]:
    """The signals with their bytes; `redact`: without texts."""
    if redact:
        return [
            made(redacted(each.signal), first=each.is_first, start=each.subject.start)
            for each in publish
        ]
    ready: list[NewSignal] = []
    of: SubjectSignals | None = None
    for each in publish:
        if of is None or of.subject is not each.subject:
            of = SubjectSignals(each.subject)
        ready.append(of.made(each.outcome, each.id, sampling=each.sampling, first=each.is_first))
    return ready


def work_record(work: WorkRecord | RunawayRecord) -> New:
    about = work.subject if isinstance(work, RunawayRecord) else work
    return New(topic=TRACES, key=session_key(about.service, about.session_id), value=encode(work))


def change_record(change: Change, partition: int) -> New:
    """The record of topic `sessions`, or of `traces` for a report."""
    if isinstance(change, Tombstone):
        return New(topic=SESSIONS, key=state_key(change.state), value=None, partition=partition)
    if isinstance(change, SessionHead | SessionTurn | SessionAwaited | MoreRecord):
        return New(topic=SESSIONS, key=state_key(change), value=encode(change), partition=partition)
    key = session_key(change.service, change.session_id)
    return New(topic=TRACES, key=key, value=encode(change), partition=partition)


def state_key(state: SessionsTopic) -> bytes:
    """The session's key, extended for its traces and for the verdict that it waits for."""
    if isinstance(state, MoreRecord):
        return more_key(state.service, state.agent, state.version)
    about = state.subject if isinstance(state, SessionAwaited) else state
    key = session_key(about.service, about.session_id)
    if isinstance(state, SessionTurn):
        return turn_key(key, state.turn.trace_id)
    return awaited_key(key, state.digest) if isinstance(state, SessionAwaited) else key
