"""The shell around the open sessions: poll, score in waves, write once per batch.

    batch -> [wave: at most one record per session] -> workers -> sessions -> one write: signals, state, commit

It waits and decides nothing; the open sessions decide, in the order of the records.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from collector.config.tree import Windows
from collector.errors import RecordTooLarge, Undecodable
from collector.log.consumer import Consumer
from collector.log.port import SESSIONS, TRACES, Assigned, Batch, Commit, Log, New, Position, Record
from collector.pool.port import ScoreJob, Workers
from collector.records.sessions import SessionsTopic, SessionTurn, decode_sessions
from collector.records.trace_views import decode_without_spans
from collector.records.traces import TraceReader, TraceRecord, VerdictRecord, previous_trace
from collector.runtime.retry import Retry, Sleep
from collector.scoring.effects import Effects, Rescored, Task, WriteBatch
from collector.scoring.families import ScoringFamilies
from collector.scoring.open_sessions import OpenSessions
from collector.scoring.rules import Rules
from collector.scoring.sliding_window import ordered_start
from collector.telemetry import Telemetry
from evaluators.model import Outcome, Previous, SessionClosed

_BATCH = 32
"""Records of one poll."""
_POLL = 0.5
"""Seconds that a poll waits for records: how late a session may close by the clock."""

_InWave: TypeAlias = tuple[OpenSessions, Record, Task | None]
"""A record, and its task if it has something to score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dispatched:
    """A task, and the traces of those of its reruns whose record the log still has."""

    sessions: OpenSessions
    task: Task
    reruns: tuple[SessionTurn, ...]
    jobs: tuple[ScoreJob, ...]


class Scorer(Consumer):
    """Reads `traces`, keeps the sessions of its partitions, publishes signals."""

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
        super().__init__(
            log=log,
            group=group,
            topic=TRACES,
            retry=Retry("Scoring", sleep),
            telemetry=telemetry,
            max_records=_BATCH,
            timeout=_POLL,
        )
        self._workers = workers
        self._rules = rules
        self._limits = windows.session
        self._telemetry = telemetry
        self._families = ScoringFamilies(telemetry)
        self._sessions: dict[int, OpenSessions] = {}
        """By partition."""
        self._batch = WriteBatch(redact=redact)
        self._committed: dict[int, int] = {}
        """By partition: the offset from which a new owner would read."""
        self._is_draining = False

    async def drain(self, reason: SessionClosed = "idle") -> None:
        """Read `traces` to the end, then close every session for that reason. Call it when `run` has ended.

        The clock closes no session meanwhile, only the log times of records do. An outage of the log is waited out.
        """
        self._retry.stopping = asyncio.Event()
        self._is_draining = True
        try:
            async with self._joined():
                await self._read_to_end()
                for sessions in self._sessions.values():
                    await self._apply(sessions, sessions.close_all(reason))
                await self.commit()
                # The first write commits past the closed sessions, which releases the tombstones of their heads.
                await self.commit()
        finally:
            self._is_draining = False

    def join(self) -> None:
        """Join the group without any session."""
        super().join()
        self._sessions.clear()
        self._batch.clear()

    async def revoke(self, partition: int) -> None:
        """Forget the partition's sessions; they wait in the log for the next owner."""
        self._sessions.pop(partition, None)
        self._batch.forget(partition)

    async def assign(self, assigned: Assigned) -> None:
        """Read the partition's sessions back (rule 5)."""
        self._committed[assigned.partition] = assigned.offset or 0
        self._sessions[assigned.partition] = await self._restored(assigned.partition)

    async def take(self, batch: Batch) -> None:
        """Score the records in waves; at the end of a partition, its sessions close by the clock."""
        pending = deque(batch.records)
        while pending:
            await self._score(await self._wave(pending))
        if not self._is_draining:
            for partition, now in batch.ends.items():
                if (sessions := self._sessions.get(partition)) is not None:
                    await self._apply(sessions, sessions.close_due(now))
        self._families.sessions_active.set(sum(map(len, self._sessions.values())))
        self._families.sessions_bytes.set(sum(each.size for each in self._sessions.values()))

    async def commit(self) -> None:
        """Write everything decided so far, however long the log takes; state in memory is applied once."""
        records, commits = self._batch.records, self._offsets.commits()
        if not records and not commits:
            return
        await self._retry.log("write signals", lambda: self._write(records, commits))
        self._offsets.committed(commits)
        self._committed |= {each.partition: each.offset for each in commits}
        self._batch.clear()
        for partition, sessions in self._sessions.items():
            dropped = sessions.committed(self._committed[partition])
            self._batch.add_changes(dropped, partition=partition)

    async def _write(self, records: Sequence[New], commits: Sequence[Commit]) -> None:
        try:
            await self._log_port.write(records, commits)
        except RecordTooLarge:
            await self._write_singly(records)
            await self._log_port.write((), commits)

    async def _write_singly(self, records: Sequence[New]) -> None:
        """One record among many can never be written: name it and pass it over."""
        for record in records:
            try:
                await self._log_port.write((record,))
            except RecordTooLarge as error:
                self._poison.too_large(record.topic, record.key, error)

    async def _restored(self, partition: int) -> OpenSessions:
        sessions = OpenSessions(
            partition=partition,
            rules=self._rules,
            limits=self._limits,
            partitions=max(1, self._log_port.partitions(TRACES)),
        )
        state = await self._retry.log("read sessions", lambda: self._replayed(partition))
        self._batch.add_changes(sessions.restore(state.values()), partition=partition)
        return sessions

    async def _replayed(self, partition: int) -> dict[bytes, SessionsTopic]:
        state: dict[bytes, SessionsTopic] = {}
        async for record in self._log_port.replay(SESSIONS, partition):
            state.pop(record.key, None)
            if not record.value:
                continue
            try:
                state[record.key] = decode_sessions(record.value)
            except Undecodable as error:
                self._poison.unprocessable(record.position, error)
        return state

    async def _wave(self, pending: deque[Record]) -> list[_InWave]:
        """The records from the left that may be under way together: at most one of each session."""
        wave: list[_InWave] = []
        while pending:
            record = pending[0]
            sessions = self._sessions.get(record.position.partition)
            if sessions is None:
                pending.popleft()
                continue
            if not sessions.accepts(record.key, record.position.offset, record.time):
                break
            pending.popleft()
            subject = self._decoded(record)
            task = None if subject is None else await self._meet(sessions, record, subject)
            wave.append((sessions, record, task))
            await _yield_to_others()
        return wave

    def _decoded(self, record: Record) -> TraceRecord | VerdictRecord | None:
        """The record's trace or verdict; None: it is of another kind, or can never be processed."""
        try:
            subject = decode_without_spans(record.value)
        except Undecodable as error:
            self._poison.unprocessable(record.position, error)
            return None
        return subject if isinstance(subject, TraceRecord | VerdictRecord) else None

    async def _meet(
        self, sessions: OpenSessions, record: Record, subject: TraceRecord | VerdictRecord
    ) -> Task | None:
        """Apply a verdict, or place a trace; None: there is nothing to score."""
        key, offset, now = record.key, record.position.offset, record.time
        if isinstance(subject, VerdictRecord):
            effects = sessions.on_verdict(subject, key=key, offset=offset, now=now)
            await self._apply(sessions, effects)
            return None
        await self._apply(sessions, sessions.make_room(key, offset, now))
        try:
            task = sessions.take(subject, key=key, offset=offset, now=now)
        except Undecodable as error:
            self._poison.unprocessable(record.position, error)
            return None
        if isinstance(task, str):
            self._families.trace_records_dropped.labels(task).inc()
            return None
        entry = task.entry
        if task.earlier is None:
            self._telemetry.count_service(entry.service, now)
            if ordered_start(entry) < entry.turn.start_time_unix_nano:
                label = self._telemetry.service(entry.service)
                self._families.starts_clamped.labels(label).inc()
        return task

    async def _score(self, wave: Sequence[_InWave]) -> None:
        """Run the evaluators of a wave, then apply their outcomes in the order of the records."""
        readers: dict[int, TraceReader[TraceRecord]] = {}
        dispatched: dict[int, _Dispatched] = {}
        for index, (sessions, _record, task) in enumerate(wave):
            if task is not None:
                partition = sessions.partition
                if partition not in readers:
                    readers[partition] = TraceReader(self._get, partition, _decode_trace)
                dispatched[index] = await self._dispatch(sessions, task, readers[partition])
        jobs = [job for each in dispatched.values() for job in each.jobs]
        answers = iter(await self._workers.score(jobs) if jobs else ())
        for index, (sessions, record, _task) in enumerate(wave):
            if (each := dispatched.get(index)) is not None:
                await self._apply(sessions, [_finished(each, [next(answers) for _ in each.jobs])])
                await _yield_to_others()
            self._offsets.done(record.position)

    async def _dispatch(
        self, sessions: OpenSessions, task: Task, reader: TraceReader[TraceRecord]
    ) -> _Dispatched:
        history = await _history(task.history, reader)
        jobs = [ScoreJob(trace=task.trace, history=history, turn=task.number)]
        reruns: list[SessionTurn] = []
        for rerun in task.reruns:
            record = await _read_back(rerun.entry, reader)
            if record is None:
                continue
            reruns.append(rerun.entry)
            history = await _history(rerun.history, reader)
            jobs.append(
                ScoreJob(trace=record.trace, history=history, only=self._rules.history_takers)
            )
        return _Dispatched(sessions=sessions, task=task, reruns=tuple(reruns), jobs=tuple(jobs))

    async def _get(self, position: Position) -> Record | None:
        return await self._retry.log("fetch a trace", lambda: self._log_port.get(position))

    async def _apply(self, sessions: OpenSessions, effects: Iterable[Effects]) -> None:
        for each in effects:
            self._batch.add(each, partition=sessions.partition)
            if each.closed is not None:
                service, reason = each.closed
                label = self._telemetry.service(service)
                self._families.sessions_closed.labels(label, reason).inc()
            if self._batch.is_large:
                await self.commit()


async def _yield_to_others() -> None:
    """Senders wait for their acknowledgements: between two traces other tasks run on the event loop."""
    await asyncio.sleep(0)


def _decode_trace(value: bytes) -> TraceRecord | None:
    record = decode_without_spans(value)
    return record if isinstance(record, TraceRecord) else None


async def _read_back(entry: SessionTurn, reader: TraceReader[TraceRecord]) -> TraceRecord | None:
    """The trace's newest record; None: it has expired, or the log has another trace in its place."""
    record = await reader.trace(entry.offset)
    return record if record is not None and record.trace.digest == entry.turn.digest else None


async def _history(
    entries: Iterable[SessionTurn], reader: TraceReader[TraceRecord]
) -> tuple[Previous, ...]:
    """Earlier turns as evaluators see them, the newest last; outputs that state no longer keeps come from the log."""
    history: list[Previous] = []
    for entry in entries:
        output = entry.turn.output
        if not entry.kept:
            record = await _read_back(entry, reader)
            output = None if record is None else record.trace.output
        history.append(previous_trace(entry.turn.trace_id, entry.turn.digest, output))
    return tuple(history)


def _finished(each: _Dispatched, answers: Sequence[tuple[Outcome, ...]]) -> Effects:
    own, *others = answers
    rescored = [
        Rescored(entry=entry, outcomes=outcomes)
        for entry, outcomes in zip(each.reruns, others, strict=True)
    ]
    return each.sessions.finish(each.task, own, rescored)
