"""Topic `traces`: closed traces, verdicts, closed sessions, runs, sessions' work, runaways, what is forwarded.

It is partitioned by session.

A trace record can be read back by the offset that state keeps of it (`TraceReader`).
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Generic, TypeAlias, TypeVar

import msgspec

from collector.base.errors import Undecodable
from collector.log.port import TRACES, Position, Record
from collector.records.codec import decode
from collector.records.keeping import BroadcastRecord, KeepingRecord
from collector.records.more import AskRecord, MoreRecord
from collector.records.span_refs import Piece
from collector.records.subject import Subject
from evaluators.matching.text import QUESTION, clip
from evaluators.model import Outcome, Previous, SessionClosed, Trace, Turn
from evaluators.uses import SessionUses, Work

GetRecord: TypeAlias = Callable[[Position], Awaitable[Record | None]]
"""`Log.get`, or a room's way to try it again."""
_T = TypeVar("_T")


class TraceRecord(msgspec.Struct, frozen=True, kw_only=True, tag="trace", omit_defaults=True):
    """A closed trace: normalised for scoring, raw for revision, replay and inspection."""

    trace: Trace
    spans: tuple[Piece, ...]
    """The raw pieces, each an ExportTraceServiceRequest, in arrival order, or their places in topic `spans`."""
    revision: int
    seen: float  # log time at which the newest span arrived: the signal's `time`
    randomness: int | None = None
    """56 bits, where its spans say another than the end of its id (`ot=rv:` of their trace state)."""


class VerdictRecord(msgspec.Struct, frozen=True, kw_only=True, tag="verdict", omit_defaults=True):
    """The judge's outcomes for a subject; the first verdict on a subject and digest in the log wins."""

    scope: str
    service: str
    session_id: str
    subject: str  # trace id, or session id
    digest: str  # of what was judged: the trace's digest, or the session's input digest
    outcomes: tuple[Outcome, ...]
    calls: int = 0  # requests that were made and answered, for the budget
    cost_usd: float = 0.0
    more: bool = False  # beyond `judge.sample`: half of the budget is for these at most


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True, tag="session", omit_defaults=True):
    """A session closed; `traces` are the offsets of its newest trace records in this partition."""

    service: str
    session_id: str
    closed: SessionClosed
    traces: tuple[int, ...]
    digest: str = ""  # the input digest that a verdict about the session names
    due: tuple[str, ...] = ()  # session evaluators that still need a verdict
    more: bool = False  # its judge is asked beyond `judge.sample`
    agent: str = ""
    turns: tuple[Turn, ...] = ()
    """Its newest ones with their scores, where evaluators of third parties are due."""


class RunRecord(msgspec.Struct, frozen=True, kw_only=True, tag="run", omit_defaults=True):
    """A closed session was a run of a task. Written once its success is decided."""

    service: str
    session_id: str
    agent: str
    task_id: str
    success: bool | None  # None: neither its spans nor `tasks.evaluator` decide it
    stated: bool = False  # whether its spans say it: then feedback does not decide it
    ended: float  # log time at which its newest span arrived: the newest runs of a task count
    named_at: int = 0  # start (unix nanoseconds) of the trace that named the task: the order of runs in recordings


class TraceCalls(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The model calls of a trace that closed, for what is usual for its agent."""

    trace_id: str
    agent: str
    model: str  # the first model that was called
    model_calls: int


class RunawayRecord(msgspec.Struct, frozen=True, kw_only=True, tag="runaway", omit_defaults=True):
    """A trace that may run away: what is usual for its agent, which spans all partitions, decides.

    Assembly writes it of a trace that is still open (`subject.closed` None), scoring of one that has closed.
    """

    subject: Subject
    model: str = ""  # the first model that was called
    model_calls: int
    digest: str  # of the trace as it was looked at
    outcome: Outcome  # of `runaway` for the trace alone
    is_first: bool = False  # it is the first final outcome of the trace, which counters count


class TurnUses(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What a turn used, for fault watches. Stored by order: append only."""

    trace_id: str
    revision: int
    uses: SessionUses
    """Of the turn alone, but that a call counts as repeated when the session has made it three times."""


class WorkRecord(msgspec.Struct, frozen=True, kw_only=True, tag="work", omit_defaults=True):
    """What of a session is ranked among earlier ones, as its window is; the last of a session when it closes."""

    service: str
    session_id: str
    session_source: str
    agent: str
    agent_version: str | None = None
    model: str = ""  # the first model of the first turn
    seen: float  # log time at which its newest span was first seen: the signals' `time`
    revision: int
    closed: SessionClosed | None = None  # None: it is open
    digest: str  # the session's input digest
    work: Work = Work()  # summed over its turns
    writes: tuple[int, ...] = ()  # digests of what its turns changed, sorted
    has_text: bool = True  # whether the spans of any turn carry content
    task_id: str | None = None
    repeated: Outcome | None = None
    """Of `repeated_calls` for the session alone, which the agent's earlier sessions complete; None: it is not due."""
    ended: int = 0  # end of its newest span (unix nanoseconds), once it is closed: the order of closing in recordings
    trace: TraceCalls | None = None
    """Of the turn that changed the session; None: `runaway` is off, or no turn did."""
    started: int = 0  # of its first trace (unix nanoseconds)
    first_trace: str | None = None
    newest_trace: str | None = None
    used: TurnUses | None = None
    """Of the turn that changed the session; None: no turn did."""
    failed: bool = False  # whether a score of the session, as its window is, did not pass
    cancelled: bool = False  # whether somebody stopped a turn of it: its work is not what the agent would have done


TracesTopic: TypeAlias = (
    TraceRecord
    | VerdictRecord
    | SessionRecord
    | RunRecord
    | WorkRecord
    | RunawayRecord
    | KeepingRecord
    | BroadcastRecord
    | MoreRecord
    | AskRecord
)
decode_traces: Callable[[bytes], TracesTopic] = partial(
    decode, msgspec.msgpack.Decoder(TracesTopic)
)
"""A record of `traces`, raw spans included.

Raises UnknownKind: a newer version wrote it. Raises Undecodable: it is not a record of `traces`.
"""


class TraceReader(Generic[_T]):
    """Reads records of one partition of `traces`, each at most once.

    `get`: fetches a record; None when it has expired. `decode`: makes a trace of a record; None for another kind of
    record. It may raise `Undecodable`.
    """

    def __init__(
        self, get: GetRecord, partition: int, decode: Callable[[Record], _T | None]
    ) -> None:
        self._get = get
        self._partition = partition
        self._decode = decode
        self._read: dict[int, _T | None] = {}

    async def trace(self, offset: int) -> _T | None:
        """The trace at this offset; None: it has expired, or the record is not a trace."""
        if offset not in self._read:
            record = await self._get(Position(TRACES, self._partition, offset))
            self._read[offset] = None if record is None else self._decoded(record)
        return self._read[offset]

    def _decoded(self, record: Record) -> _T | None:
        try:
            return self._decode(record)
        except Undecodable:
            return None


def previous_trace(
    trace_id: str, digest: str, question: str | None, answer: str | None
) -> Previous:
    """An earlier trace as History shows it: of its output the first 8 KiB, of its input the first KiB."""
    return Previous(
        trace_id=trace_id,
        digest=digest,
        output=None if answer is None else clip(answer),
        input=None if question is None else clip(question, QUESTION),
    )
