"""The judging room: reads `traces`, has every due subject judged, appends one verdict for each.

    record -> due? -> its service's turn -> the judge process -> one write: verdict, commit

At most `judge.concurrency` subjects are judged at once. Others wait here without their content, at most READ_AHEAD, so
that services take turns whatever their order in the log; the rest waits in the log. The commit is the low-water of the
subjects that wait or are under way, so these are read again after a crash; a subject that has its verdict is not judged
again.
"""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress

from msgspec.structs import replace

from collector.base import watch
from collector.base.clock import Clock
from collector.base.errors import RecordTooLarge, Retryable, Undecodable
from collector.base.retry import Retry, Sleep
from collector.base.telemetry import Telemetry
from collector.config.tree import JudgeConfig
from collector.judging.budget import DAY, Budget, in_sample
from collector.judging.dispatcher import Dispatcher
from collector.judging.port import JobDone, JudgeLateError, Judges
from collector.judging.session_turns import PlacedTurn, SessionTurns
from collector.judging.subjects import Content, JudgedSubject, Progress, job_of, read_back
from collector.log.consumer import Consumer
from collector.log.port import TRACES, Assigned, Batch, Commit, Log, New, Position, Record
from collector.records.codec import encode
from collector.records.more import AskRecord
from collector.records.sessions import split_session_key
from collector.records.trace_views import (
    JudgedTrace,
    RawTrace,
    decode_judged_trace,
    decode_raw_trace,
)
from collector.records.traces import SessionRecord, VerdictRecord
from evaluators.model import Failure, Scope
from evaluators.plan import Configured, sees_history
from evaluators.resources import WINDOW
from evaluators.run import failed

BATCH = 64
POLL = 0.5
_TOO_LARGE = Failure(type="too_large", message="the verdict is too large for the log")
COMMIT_EVERY = 1.0
"""Seconds between commits that no verdict carries."""


class JudgingRoom(Consumer):
    """See the module.

    Args:
        config: Concurrency, sample, `max_lag`.
        budget: Restored from the verdicts in the log.
        clock: The log's clock: the age of a subject is a matter of log time.
        budget_clock: The budget's clock where the log has another one.
        session_age: Seconds after which a session is closed whatever comes.
        sleep: `asyncio.sleep`, or a test's.
    """

    def __init__(  # noqa: PLR0913 - its collaborators, by name
        self,
        *,
        log: Log,
        judges: Judges,
        judged: Sequence[Configured],
        config: JudgeConfig,
        budget: Budget,
        telemetry: Telemetry,
        clock: Clock,
        group: str = "judging",
        budget_clock: Clock | None = None,
        session_age: float = DAY,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        super().__init__(
            log=log,
            group=group,
            topic=TRACES,
            retry=Retry("Judging", sleep),
            telemetry=telemetry,
            max_records=BATCH,
            timeout=POLL,
        )
        self._judges = judges
        self._judged = {
            scope: tuple(each for each in judged if each.spec.scope == scope)
            for scope in ("trace", "session")
        }
        self._names = frozenset(each.spec.name for each in judged)
        self._history = WINDOW if any(map(sees_history, judged)) else 0
        self._asks = any("judge" in each.spec.needs for each in judged)
        self._config = config
        self._budget = budget
        self._clock = clock
        self._session_age = session_age
        self._partitions: dict[int, Progress] = {}
        self._turns = SessionTurns()
        self._dispatcher = Dispatcher(
            config,
            budget,
            clock=clock,
            budget_clock=budget_clock or clock,
            judge=self._judge,
        )
        self._committed_at = clock()
        self._numbers = itertools.count()  # of jobs
        self._subjects = asyncio.TaskGroup()

    async def run(self, stopping: asyncio.Event) -> None:
        """Judge until `stopping` is set; subjects under way then are judged after the next start."""
        self._retry.stopping = stopping
        async with self.standing():
            await self._read(lambda: self._read_and_stop(stopping), lets_go=True)

    @asynccontextmanager
    async def standing(self) -> AsyncGenerator[None]:
        """Keep the judge process; around any number of `drain`."""
        async with asyncio.TaskGroup() as group:
            judges = group.create_task(self._judges.run(), name="judge process")
            watching = group.create_task(watch.ends([judges]))
            try:
                yield
            finally:
                watching.cancel()
                judges.cancel()

    async def drain(self) -> None:
        self._retry.stopping = asyncio.Event()
        await self._read(self._read_and_judge_all, lets_go=False)

    async def _read(
        self, loop: Callable[[], Coroutine[None, None, None]], *, lets_go: bool
    ) -> None:
        """Run the loop, then wait for the subjects under way."""
        self._partitions.clear()
        try:
            async with self._joined(), asyncio.TaskGroup() as self._subjects:
                self._dispatcher.start(self._subjects, lets_go=lets_go)
                await loop()
        except* _StopError:
            pass
        except* Retryable as errors:
            self._log_unwritten(errors)

    async def _read_and_stop(self, stopping: asyncio.Event) -> None:
        """Read until `stopping` is set, then cancel the subjects under way.

        The stop is watched by a task of its own: taking a batch may wait for a subject's verdict.
        """
        self._subjects.create_task(_stop_after(stopping))
        while True:
            await self.step()

    async def _read_and_judge_all(self) -> None:
        await self._read_to_end()
        await self._dispatcher.settle()

    async def revoke(self, partition: int) -> None:
        progress = self._partitions.pop(partition, None)
        if progress is not None:
            self._dispatcher.drop(progress)

    async def assign(self, assigned: Assigned) -> None:
        """Read back what the verdicts of the day cost, and which subjects above the commit have theirs.

        Below the commit, read back the turns of sessions that may still be open: later traces are numbered after them.
        """
        partition, committed = assigned.partition, assigned.offset or 0
        progress = self._partitions[partition] = Progress(committed)
        self._budget.share = len(self._partitions) / max(1, self._log_port.partitions(TRACES))
        now = self._clock()
        oldest = min(now // DAY * DAY, now - self._session_age)
        async for record in self._log_port.replay(TRACES, partition):
            is_below = record.position.offset < committed
            if record.time < oldest and is_below:
                continue
            try:
                self._restore(record, progress, is_below=is_below)
            except Undecodable:
                continue  # reported when this record was, or will be, taken in order

    async def take(self, batch: Batch) -> None:
        """Let the due subjects of a batch wait for their turn; waits while READ_AHEAD do."""
        self._dispatcher.begin()
        for record in batch.records:
            progress = self._partitions.get(record.position.partition)
            if progress is not None:
                await self._take(record, progress)

    async def commit(self) -> None:
        """Commit each partition's low-water, at most once in COMMIT_EVERY seconds; verdicts carry commits, too."""
        now = self._clock()
        if abs(now - self._committed_at) < COMMIT_EVERY:
            return
        self._committed_at = now
        commits = [
            self._commit_of(partition, low_water)
            for partition, progress in self._partitions.items()
            if progress.is_new(low_water := progress.low_water())
        ]
        if commits:
            await self._retry.log("commit traces", lambda: self._log_port.write((), commits))

    def _restore(self, record: Record, progress: Progress, *, is_below: bool) -> None:
        decoded = decode_raw_trace(record.value)
        if isinstance(decoded, VerdictRecord):
            self._note(decoded, progress)
            at = record.position
            if self._budget.is_restored(
                at.partition, at.offset
            ):  # by the room of the other evaluators
                return
            self._budget.restore(
                record.time,
                decoded.service,
                calls=decoded.calls,
                usd=decoded.cost_usd,
                now=self._clock(),
                more=decoded.more,
            )
        elif isinstance(decoded, SessionRecord):
            if is_below:
                self._turns.closed(record.key, decoded.traces)
        elif isinstance(decoded, RawTrace) and is_below and self._judged["trace"]:
            trace = decode_judged_trace(decoded.trace)
            if trace.is_judged:
                self._turns.add(record.key, _turn(record, trace))

    async def _take(self, record: Record, progress: Progress) -> None:
        try:
            decoded = decode_raw_trace(record.value)
            if isinstance(decoded, RawTrace):
                await self._take_trace(record, decoded, progress)
            elif isinstance(decoded, SessionRecord):
                self._turns.closed(record.key, decoded.traces)
                await self._take_session(record, decoded, progress)
            elif isinstance(decoded, VerdictRecord):
                self._note(decoded, progress)
            elif isinstance(decoded, AskRecord):
                await self._take_asked(record.position, decoded, progress)
        except Undecodable as error:
            self._poison.unprocessable(record.position, error)
        progress.taken(record.position.offset)

    def _note(self, verdict: VerdictRecord, progress: Progress) -> None:
        if any(each.evaluator in self._names for each in verdict.outcomes):
            progress.judged(verdict.subject, verdict.digest)

    async def _take_asked(self, at: Position, ask: AskRecord, progress: Progress) -> None:
        """A trace that scoring wants judged beyond the sample: it precedes the request for it."""
        if not self._judged["trace"]:
            return
        record = await self._get(Position(TRACES, at.partition, ask.offset))
        raw = None if record is None else decode_raw_trace(record.value)
        if record is not None and isinstance(raw, RawTrace):
            await self._take_trace(record, raw, progress, more=True)

    async def _take_trace(
        self, record: Record, raw: RawTrace, progress: Progress, *, more: bool = False
    ) -> None:
        trace = decode_judged_trace(raw.trace)
        if not self._judged["trace"] or not trace.is_judged:
            return
        turn = _turn(record, trace)
        number = self._turns.add(record.key, turn)
        is_judged = progress.is_judged(trace.trace_id, trace.digest)
        is_asked = more or in_sample(record.key, self._config.sample)
        if is_judged or not is_asked or not self._dispatcher.is_in_time(record.time):
            return
        before = self._turns.before(record.key, turn, self._history)
        about = trace.trace_id, trace.digest
        await self._add(record, raw, "trace", about, more=more, turn=number, before=before)

    async def _take_session(
        self, record: Record, session: SessionRecord, progress: Progress
    ) -> None:
        about = session.session_id, session.digest
        if progress.is_judged(*about) or self._names.isdisjoint(session.due):
            return
        if self._dispatcher.is_in_time(record.time):  # scoring decides whether one is due
            await self._add(record, session, "session", about, more=session.more)

    async def _add(
        self,
        record: Record,
        content: Content,
        scope: Scope,
        about: tuple[str, str],
        *,
        more: bool,
        turn: int | None = None,
        before: Sequence[PlacedTurn] = (),
    ) -> None:
        """`about`: the subject and its digest."""
        service, session_id = split_session_key(record.key)
        progress = self._partitions[record.position.partition]
        progress.judged(*about)
        subject = JudgedSubject(
            position=record.position,
            key=record.key,
            time=record.time,
            progress=progress,
            verdict=VerdictRecord(
                scope=scope,
                service=service,
                session_id=session_id,
                subject=about[0],
                digest=about[1],
                outcomes=(),
                more=more,
            ),
            turn=turn,
            before=before,
        )
        await self._dispatcher.add(subject, content)

    async def _get(self, position: Position) -> Record | None:
        return await self._retry.log("fetch a trace", lambda: self._log_port.get(position))

    async def _judge(self, subject: JudgedSubject, content: Content | None) -> None:
        if content is None and self._dispatcher.is_in_time(subject.time):
            content = await read_back(self._get, subject)
        if content is None:
            return
        number = next(self._numbers)
        job = await job_of(self._get, number, subject, content, with_traces=self._asks)
        with suppress(JudgeLateError):
            done = await self._judges.judge(job)
            try:
                await self._append(subject, done)
            except RecordTooLarge as error:  # its session waits for a verdict all the same
                self._poison.too_large(TRACES, subject.key, error)
                due = self._judged[subject.verdict.scope]
                outcomes = tuple(failed(each, _TOO_LARGE) for each in due)
                await self._append(subject, replace(done, outcomes=outcomes))
            self._judges.written(done)

    async def _append(self, subject: JudgedSubject, done: JobDone) -> None:
        position, progress = subject.position, subject.progress
        verdict = replace(
            subject.verdict, outcomes=done.outcomes, calls=done.calls, cost_usd=done.cost_usd
        )
        key, partition = subject.key, position.partition
        new = New(topic=TRACES, key=key, value=encode(verdict), partition=partition)
        low_water = progress.low_water(without=position.offset)
        commits = [self._commit_of(partition, low_water)] if progress.is_new(low_water) else []
        await self._retry.log("write a verdict", lambda: self._log_port.write([new], commits))

    def _commit_of(self, partition: int, offset: int) -> Commit:
        return Commit(group=self._group, topic=TRACES, partition=partition, offset=offset)


class _StopError(Exception):
    """The room is to stop: the tasks of the subjects under way are cancelled."""


async def _stop_after(stopping: asyncio.Event) -> None:
    await stopping.wait()
    raise _StopError


def _turn(record: Record, trace: JudgedTrace) -> PlacedTurn:
    return PlacedTurn(
        start=trace.start_time_unix_nano,
        trace_id=trace.trace_id,
        digest=trace.digest,
        offset=record.position.offset,
    )
