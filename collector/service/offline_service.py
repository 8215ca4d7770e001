"""The rooms over a log in memory whose clock does not move.

All records have one log time, so nothing closes by itself: `assemble` closes every trace, `score` every session. The
same spans give the same signal ids as in the running service, because nothing but the spans goes into an id.

The log holds what one call works on and is empty between calls: give it whole traces and whole sessions, a few at once.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from collector.base.clock import wall
from collector.base.supervisor import leaves
from collector.base.telemetry import Telemetry
from collector.config.tree import Config
from collector.log.memory import MemoryLog
from collector.log.port import CLOSINGS, SIGNALS, SPANS, TRACES, New, Record
from collector.otlp.redaction import RedactionSettings, redactor
from collector.otlp.repair import DecodedRequest
from collector.otlp.signal import OtlpSignal
from collector.otlp.split import Piece, SplitRequest
from collector.reading.port import Workers
from collector.records.sessions import session_key
from collector.records.trace_views import decode_work
from collector.records.traces import RunawayRecord, WorkRecord
from collector.records.windows import RankedSignal
from collector.service.rooms import ASSEMBLY, Rooms
from collector.watch.ranking.ranker import Ranker
from collector.watch.ranking.ranking_room import ranked_records, ranked_signals
from collector.watch.ranking.runaways import ModelCallCount
from evaluators.plan import Plan, is_third_party

_UNLIMITED = 1 << 60
_READER = "offline"
"""The group of traces and signals: it never commits, so the log drops nothing by itself."""


class OfflineService:
    """Spans or trace records in, signals out, in one process and without sockets.

    `workers`: read and score traces; the caller closes them.
    """

    def __init__(
        self,
        config: Config,
        plan: Plan,
        workers: Workers,
        telemetry: Telemetry,
    ) -> None:
        self._redact = redactor(RedactionSettings.of(config))
        self._max_item = config.windows.trace.max_bytes
        self._redacts_texts = config.redaction.content == "drop"
        self._ranker = Ranker(plan.ranked)
        self._now = wall()
        self._log_port = MemoryLog(
            clock=self._log_clock,
            max_size=_UNLIMITED,
            groups={
                SPANS: frozenset({ASSEMBLY}),
                TRACES: frozenset({_READER}),
                SIGNALS: frozenset({_READER}),
            },
        )
        rooms = self._rooms = Rooms(
            config,
            plan,
            log=self._log_port,
            workers=workers,
            telemetry=telemetry,
            clock=wall,  # the judge's budget and its waits are real
        )
        self._scorer = rooms.scorer()
        self._verdicts = [
            rooms.judging(log_clock=self._log_clock, plugins=of)
            for of in sorted({is_third_party(each) for each in plan.judged})
        ]
        """The rooms that give them."""
        if plan.plugins:
            self._verdicts.append(rooms.comparing(log_clock=self._log_clock))
        self._awaits_sessions = any(
            each.spec.scope == "session" for each in (*plan.judged, *plan.plugins)
        )

    def split(self, request: bytes, signal: OtlpSignal) -> SplitRequest:
        """Take an export request in, as the receiver does. Raises Undecodable: it is not valid OTLP."""
        decoded = DecodedRequest(request)
        if self._redact is not None:
            decoded = self._redact(decoded, signal.request)
        split = signal.split(decoded.request, max_item=self._max_item)
        split.add(decoded)
        return split

    async def put(self, record: New) -> None:
        """Put a record beside the traces of the next `score`: what the judge was paid before."""
        await self._log_port.write([record])

    async def assemble(self, pieces: Iterable[Piece]) -> list[Record]:
        """Close every trace of these pieces; returns their records of topic `traces`."""
        await self._log_port.write(
            [New(topic=SPANS, key=each.key, value=each.value) for each in pieces]
        )
        await self._rooms.assembler().drain("end")
        await self._taken(SPANS, CLOSINGS)
        return await self._taken(TRACES)

    @asynccontextmanager
    async def standing(self) -> AsyncGenerator[None]:
        """Keep the judge's process, if a judge is asked; around any number of `score`."""
        try:
            async with AsyncExitStack() as rooms:
                for room in self._verdicts:
                    await rooms.enter_async_context(room.standing())
                yield
        except BaseExceptionGroup as group:
            raise next(leaves(group)) from group

    async def score(self, traces: Iterable[New]) -> list[Record]:
        """Score these traces, which are all those of their sessions, and close the sessions.

        Returns everything that was written meanwhile: of topic `traces` the traces, verdicts, closed sessions and runs,
        then the signals. The judge is asked before the sessions are closed, so that a session closes with its verdicts.
        """
        await self._log_port.write(list(traces))
        for _ in range(1 + self._awaits_sessions):
            async with asyncio.TaskGroup() as drains:
                for room in self._verdicts:
                    drains.create_task(room.drain())
            await self._scorer.drain("idle")
        await self._rank()
        return await self._taken(TRACES, SIGNALS)

    async def _rank(self) -> None:
        """Rank the sessions that have closed, in the order of closing, among those of earlier calls too.

        The traces of a session are ranked with it: what is said of the session while it is open is left out.
        """
        closed: list[WorkRecord] = []
        of_session: dict[bytes, list[WorkRecord | RunawayRecord]] = {}
        async for record in self._log_port.replay(TRACES, 0):
            work = decode_work(record.value)
            if isinstance(work, WorkRecord) and work.closed is not None:
                closed.append(work)
            elif isinstance(work, WorkRecord | RunawayRecord):
                of_session.setdefault(record.key, []).append(work)
        closed.sort(key=lambda each: (each.ended, each.session_id, each.service))
        signals: list[RankedSignal] = []
        for session in closed:
            for each in of_session.get(session_key(session.service, session.session_id), ()):
                if isinstance(each, RunawayRecord):
                    signals += ranked_signals(self._ranker.take(each), redact=self._redacts_texts)
                elif each.trace is not None:
                    self._ranker.put_call(ModelCallCount.of(each.service, each.trace))
            signals += ranked_signals(self._ranker.take(session), redact=self._redacts_texts)
        await self._log_port.write([*ranked_records(signals, joined=True)])

    async def _taken(self, *topics: str) -> list[Record]:
        records = [record for topic in topics async for record in self._log_port.replay(topic, 0)]
        self._log_port.release(each.position for each in records)
        return records

    def _log_clock(self) -> float:
        return self._now
