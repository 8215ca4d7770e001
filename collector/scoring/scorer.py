"""The shell around the desks: poll, score in waves, write once per batch.

    batch -> [wave: at most one record per session] -> workers -> desks -> one write: signals, state, commit

It waits and decides nothing; what a record means is the desk's, in the order of the records.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from collector.config.tree import Windows
from collector.errors import RecordTooLarge, Retryable, Undecodable
from collector.log.port import SESSIONS, TRACES, Batch, Log, New, Position, Reader, Record
from collector.pool.port import ScoreJob, Workers
from collector.records.sessions import SessionsTopic, decode_sessions
from collector.records.trace_views import decode_without_spans
from collector.records.traces import TraceRecord, VerdictRecord
from collector.runtime.retry import Retry, Sleep
from collector.scoring.desk import Desk
from collector.scoring.effects import Effects, Scored, SessionClosed, Task
from collector.scoring.outbox import Outbox
from collector.scoring.ports import Rules
from collector.scoring.recall import Recall
from collector.telemetry import Telemetry
from evaluators.model import Outcome

BATCH = 32
_POLL = 0.5
_POLLS_WITHOUT_PARTITION = 20
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dispatched:
    """A task and the records its reruns are about."""

    desk: Desk
    task: Task
    neighbours: tuple[TraceRecord, ...]
    jobs: tuple[ScoreJob, ...]


class Scorer:
    """The room: reads `traces`, keeps the sessions of its partitions, publishes signals."""

    def __init__(
        self,
        *,
        log: Log,
        workers: Workers,
        rules: Rules,
        windows: Windows,
        telemetry: Telemetry,
        redact: bool = False,
        group: str = "scoring",
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._trace_log = log
        self._workers = workers
        self._rules = rules
        self._limits = windows.session
        self._telemetry = telemetry
        self._redact = redact
        self._group = group
        self._desks: dict[int, Desk] = {}
        self._outbox = Outbox(group)
        self._committed: dict[int, int] = {}
        self._retry = Retry("Scoring", sleep, last_attempts=1)

    async def run(self, stopping: asyncio.Event) -> None:
        """Score until told to stop; sessions stay open, they wait in the log."""
        self._retry.stopping = stopping
        try:
            async with self._reading() as reader:
                while not stopping.is_set():
                    await self._take(await self._poll(reader), tick=True)
                await self._flush()
        except Retryable as error:
            # What was not written is read and decided again after the start.
            _log.warning("Stopped while the log was unavailable: %s.", error)

    async def drain(self, reason: SessionClosed = "idle") -> None:
        """Read `traces` to the end, then close every session for that reason. Call it when `run` has ended."""
        self._retry.stopping = asyncio.Event()
        async with self._reading() as reader:
            patience = _POLLS_WITHOUT_PARTITION
            while patience and not await self._reached_end(reader):
                patience -= not self._desks
            for desk in self._desks.values():
                await self._settle(desk.close_all(reason))
            await self._flush()
            await self._flush()

    async def _reached_end(self, reader: Reader) -> bool:
        batch = await self._poll(reader)
        await self._take(batch, tick=False)
        at_end = self._desks.keys() & batch.ends.keys()
        return bool(self._desks) and at_end == self._desks.keys() and not batch.assigned

    async def _poll(self, reader: Reader) -> Batch:
        return await self._retry.log(
            "read traces", lambda: reader.poll(max_records=BATCH, timeout=_POLL)
        )

    @asynccontextmanager
    async def _reading(self) -> AsyncGenerator[Reader]:
        self._desks.clear()
        self._outbox.clear()
        reader = self._trace_log.read(self._group, TRACES)
        try:
            yield reader
        finally:
            await reader.close()

    async def _take(self, batch: Batch, *, tick: bool) -> None:
        for partition in batch.revoked:
            self._desks.pop(partition, None)
            self._outbox.forget(partition)
        for assigned in batch.assigned:
            self._committed[assigned.partition] = assigned.offset or 0
            self._desks[assigned.partition] = await self._restored(assigned.partition)
        pending = deque(batch.records)
        while pending:
            await self._score(await self._wave(pending))
        if tick:
            for partition, now in batch.ends.items():
                if partition in self._desks:
                    await self._settle(self._desks[partition].close_due(now))
        self._telemetry.sessions_active.set(sum(len(desk) for desk in self._desks.values()))
        await self._flush()

    async def _restored(self, partition: int) -> Desk:
        share = max(1, self._limits.max_open // max(1, self._trace_log.partitions(TRACES)))
        desk = Desk(
            partition=partition,
            rules=self._rules,
            limits=self._limits,
            max_open=share,
            redact=self._redact,
        )
        state = await self._retry.log("read sessions", lambda: self._replayed(partition))
        self._outbox.add_state(desk.restore(state.values()))
        return desk

    async def _replayed(self, partition: int) -> dict[bytes, SessionsTopic]:
        state: dict[bytes, SessionsTopic] = {}
        async for record in self._trace_log.replay(SESSIONS, partition):
            state.pop(record.key, None)
            if not record.value:
                continue
            try:
                state[record.key] = decode_sessions(record.value)
            except Undecodable as error:
                self._poison(record, str(error))
        return state

    async def _wave(self, pending: deque[Record]) -> list[tuple[Desk, Record, Task | None]]:
        """The records from the left that may be under way together."""
        wave: list[tuple[Desk, Record, Task | None]] = []
        while pending:
            record = pending[0]
            desk = self._desks.get(record.position.partition)
            if desk is None:
                pending.popleft()
                continue
            if not desk.accepts(record.key, record.position.offset, record.time):
                break
            pending.popleft()
            wave.append((desk, record, await self._meet(desk, record)))
            await _give_way()
        return wave

    async def _meet(self, desk: Desk, record: Record) -> Task | None:
        offset = record.position.offset
        try:
            found = decode_without_spans(record.value)
            if isinstance(found, VerdictRecord):
                verdict = desk.on_verdict(found, key=record.key, offset=offset, now=record.time)
                await self._settle(verdict)
                return None
            if not isinstance(found, TraceRecord):
                return None
            await self._settle(desk.clear_the_way(record.key, offset, record.time))
            task = desk.take(found, key=record.key, offset=offset, now=record.time)
        except Undecodable as error:
            self._poison(record, str(error))
            return None
        if isinstance(task, str):
            self._telemetry.trace_records_dropped.labels(task).inc()
            return None
        return task

    async def _score(self, wave: Sequence[tuple[Desk, Record, Task | None]]) -> None:
        """Run what the wave needs, then apply it in the order of the records."""
        recalls: dict[int, Recall] = {}
        dispatched: dict[int, _Dispatched] = {}
        for place, (desk, _record, task) in enumerate(wave):
            if task is not None:
                recall = recalls.setdefault(desk.partition, Recall(self._get, desk.partition))
                dispatched[place] = await self._dispatch(desk, task, recall)
        jobs = [job for each in dispatched.values() for job in each.jobs]
        answers = iter(await self._workers.score(jobs) if jobs else ())
        for place, (_desk, record, _task) in enumerate(wave):
            if (each := dispatched.get(place)) is not None:
                await self._settle([_finished(each, [next(answers) for _ in each.jobs])])
                await _give_way()
            self._outbox.done(record.position.partition, record.position.offset)

    async def _dispatch(self, desk: Desk, task: Task, recall: Recall) -> _Dispatched:
        history = await recall.history(task.history)
        jobs = [ScoreJob(trace=task.record.trace, history=history, turn=task.turn)]
        neighbours: list[TraceRecord] = []
        for rerun in task.reruns:
            record = await recall.trace(rerun.entry)
            if record is None:
                continue
            neighbours.append(record)
            history = await recall.history(rerun.history)
            jobs.append(
                ScoreJob(trace=record.trace, history=history, only=self._rules.history_takers)
            )
        return _Dispatched(desk=desk, task=task, neighbours=tuple(neighbours), jobs=tuple(jobs))

    async def _get(self, position: Position) -> Record | None:
        return await self._retry.log("fetch a trace", lambda: self._trace_log.get(position))

    async def _settle(self, effects: Iterable[Effects]) -> None:
        for each in effects:
            self._outbox.add(each)
            if each.closed is not None:
                service, reason = each.closed
                self._telemetry.sessions_closed.labels(
                    self._telemetry.service(service), reason
                ).inc()
            if self._outbox.is_large:
                await self._flush()

    async def _flush(self) -> None:
        """Write everything decided so far, however long the log takes; state in memory is applied once."""
        if not self._outbox:
            return
        await self._retry.log("write signals", self._write)
        self._committed |= {each.partition: each.offset for each in self._outbox.commits}
        self._outbox.clear()
        for partition, desk in self._desks.items():
            self._outbox.add_state(desk.committed(self._committed[partition]))

    async def _write(self) -> None:
        try:
            await self._trace_log.write(self._outbox.records, self._outbox.commits)
        except RecordTooLarge:
            await self._write_singly()

    async def _write_singly(self) -> None:
        """One record among many can never be written: find it, name it, pass it over."""
        for record in self._outbox.records:
            await self._write_one(record)
        await self._trace_log.write((), self._outbox.commits)

    async def _write_one(self, record: New) -> None:
        try:
            await self._trace_log.write((record,))
        except RecordTooLarge as error:
            self._telemetry.poison_records.labels(record.topic).inc()
            _log.error(
                "A record is too large for the log and was dropped.",
                extra={"topic": record.topic, "key": record.key, "error": str(error)},
            )

    def _poison(self, record: Record, why: str) -> None:
        topic, partition, offset = record.position
        self._telemetry.poison_records.labels(topic).inc()
        _log.error(
            "A record can never be processed and was passed over: `%s` partition %d offset %d: %s.",
            topic,
            partition,
            offset,
            why,
        )


async def _give_way() -> None:
    """Senders wait for their acknowledgements: between two traces the event loop has a turn."""
    await asyncio.sleep(0)


def _finished(each: _Dispatched, answers: Sequence[tuple[Outcome, ...]]) -> Effects:
    own, *others = answers
    reruns = [
        Scored(record=record, outcomes=outcomes)
        for record, outcomes in zip(each.neighbours, others, strict=True)
    ]
    return each.desk.finish(each.task, own, reruns)
