"""A subject to be judged, while it waits and as a job. What waits holds no content: that is read back from the log."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from collector.base.errors import Undecodable
from collector.judging.port import Job, SessionJob, TraceJob
from collector.judging.session_turns import PlacedTurn, newest_traces, previous_turns
from collector.log.port import Position
from collector.records.trace_views import RawTrace, decode_raw_trace
from collector.records.traces import GetRecord, SessionRecord, VerdictRecord

MAX_JUDGED = 16_384  # subjects remembered as judged


class Progress:
    """Records under way and subjects that have their verdict."""

    def __init__(self, next_offset: int) -> None:
        self._next = next_offset
        self._under_way: dict[int, None] = {}
        self._judged: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._committed = next_offset

    def taken(self, offset: int) -> None:
        """The record was taken: it needs nothing more, unless its verdict is under way."""
        self._next = max(self._next, offset + 1)

    def begin(self, offset: int) -> None:
        self._under_way[offset] = None
        self.taken(offset)

    def end(self, offset: int) -> None:
        self._under_way.pop(offset, None)

    def low_water(self, without: int | None = None) -> int:
        """The offset below which every record is done with; `without`: as if that record were done with, too."""
        return min((each for each in self._under_way if each != without), default=self._next)

    def is_new(self, offset: int) -> bool:
        """Whether `offset` is above the last commit; if so, it counts as committed from now on."""
        if offset <= self._committed:
            return False
        self._committed = offset
        return True

    def judged(self, subject: str, digest: str) -> None:
        """The subject has a verdict, or one is under way."""
        self._judged[subject, digest] = None
        if len(self._judged) > MAX_JUDGED:
            self._judged.popitem(last=False)

    def is_judged(self, subject: str, digest: str) -> bool:
        return (subject, digest) in self._judged


Content = RawTrace | SessionRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSubject:
    """A trace or a session to be judged."""

    position: Position
    key: bytes
    time: float  # of its record in the log
    progress: Progress  # of its partition
    verdict: VerdictRecord  # without outcomes yet
    turn: int | None = None
    """The trace's number in its session, 1-based; None = unknown, or a session."""
    before: Sequence[PlacedTurn] = ()
    """The turns before the trace that evaluators compare it with, oldest first."""

    @property
    def service(self) -> str:
        return self.verdict.service

    @property
    def owner(self) -> str:
        verdict = self.verdict
        return "/".join((verdict.scope, verdict.service, verdict.subject, verdict.digest))


async def read_back(get: GetRecord, subject: JudgedSubject) -> Content | None:
    """The content of a subject that waited; None when the log has it no more."""
    record = await get(subject.position)
    if record is None:
        return None
    try:
        decoded = decode_raw_trace(record.value)
    except Undecodable:
        return None
    return decoded if isinstance(decoded, RawTrace | SessionRecord) else None


async def job_of(
    get: GetRecord, number: int, subject: JudgedSubject, content: Content, *, with_traces: bool
) -> Job:
    """`with_traces`: of a session, which a judge reads."""
    of: dict[str, Any] = {"id": number, "owner": subject.owner, "service": subject.service}
    partition, more = subject.position.partition, subject.verdict.more
    if isinstance(content, RawTrace):
        history = await previous_turns(get, partition, subject.before)
        return TraceJob(**of, more=more, trace=content.trace, turn=subject.turn, history=history)
    offsets = content.traces if with_traces else ()
    return SessionJob(
        **of,
        more=more,
        session_id=content.session_id,
        closed=content.closed,
        traces=await newest_traces(get, partition, offsets),
        turns=content.turns,
        agent=content.agent or content.service,
    )
