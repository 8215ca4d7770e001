"""The judging room over a log of the tests, with judges that a test decides."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from collector.base.telemetry import Telemetry
from collector.config.tree import JudgeConfig
from collector.judging.budget import Budget
from collector.judging.judging_room import JudgingRoom
from collector.judging.port import Job, JobDone, TraceJob
from collector.log.port import TRACES
from collector.records.codec import encode
from collector.records.sessions import session_key
from collector.records.traces import SessionRecord, TraceRecord, VerdictRecord, decode_traces
from evaluators.model import Trace
from evaluators.plan import Configured, make_plan
from evaluators.run import not_applicable
from tests.support.clocks import SetClock
from tests.support.evaluating import OURS, a_trace
from tests.support.faulty_log import FaultyLog

NOW = 1_790_000_000.0
KEY = session_key("bot", "s-1")
PLAN = make_plan(
    OURS,
    {},
    embedder="text-embedding-3-small",
    hosted=True,
    judge=True,
    only=["loop_detection", "helpfulness", "conversation_quality"],
)


class FakeJudges:
    """Answers at once, or so many jobs, or dies, or comes late."""

    def __init__(self, due: Sequence[Configured] = PLAN.judged) -> None:
        self.due = due
        self.jobs: list[Job] = []
        self.answered: list[int] = []
        self.error: Exception | None = None
        self.says = ""
        self.answers: int | None = None
        """Jobs that are still answered; None: all. `answer` allows one more."""
        self._asked = asyncio.Condition()

    async def judge(self, job: Job) -> JobDone:
        async with self._asked:
            self.jobs.append(job)
            self._asked.notify_all()
            await self._asked.wait_for(lambda: self.answers is None or self.answers > 0)
            if self.answers is not None:
                self.answers -= 1
        if self.error is not None:
            raise self.error
        scope = "trace" if isinstance(job, TraceJob) else "session"
        outcomes = tuple(
            not_applicable(each, "nothing_to_judge", self.says)
            for each in self.due
            if each.spec.scope == scope
        )
        return JobDone(id=job.id, outcomes=outcomes, calls=2, cost_usd=0.5)

    async def answer(self) -> None:
        """Answer one more job."""
        async with self._asked:
            self.answers = (self.answers or 0) + 1
            self._asked.notify_all()

    async def has(self, count: int) -> None:
        """Wait until so many jobs have come."""
        async with self._asked:
            await self._asked.wait_for(lambda: len(self.jobs) >= count)

    def written(self, done: JobDone) -> None:
        self.answered.append(done.id)

    async def run(self) -> None:
        await asyncio.Event().wait()

    @property
    def compared(self) -> list[list[str | None]]:
        return [
            [each.output for each in job.history] for job in self.jobs if isinstance(job, TraceJob)
        ]


class Stand:
    """A room, what it reads, and its judges."""

    def __init__(
        self,
        log: FaultyLog | None = None,
        config: JudgeConfig | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.log = log or FaultyLog(clock=SetClock(NOW))
        self.log.restart()
        self.clock = self.log.clock
        self.judges = FakeJudges()
        self.budget = budget or Budget(usd_per_day=10.0, calls_per_minute=60, service_share=0.5)
        self.room = JudgingRoom(
            log=self.log,
            judges=self.judges,
            judged=PLAN.judged,
            config=config or JudgeConfig(model="m"),
            budget=self.budget,
            telemetry=Telemetry(),
            clock=self.clock,
        )

    def put(self, *traces: Trace, key: bytes = KEY) -> None:
        for trace in traces:
            record = TraceRecord(trace=trace, revision=0, spans=(), seen=self.clock())
            self.log.append(TRACES, encode(record), key=key)

    def close(self, *offsets: int, digest: str = "") -> None:
        due = ("conversation_quality",) if digest else ()
        record = SessionRecord(
            service="bot", session_id="s-1", closed="idle", traces=offsets, digest=digest, due=due
        )
        self.log.append(TRACES, encode(record), key=KEY)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """While the room runs, for ten seconds at most."""
        stopping = asyncio.Event()
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            group.create_task(self.room.run(stopping))
            yield
            stopping.set()

    async def drain(self) -> None:
        async with self.room.standing():
            await self.room.drain()

    @property
    def verdicts(self) -> list[VerdictRecord]:
        every = (decode_traces(each.value) for each in self.log.history(TRACES))
        return [each for each in every if isinstance(each, VerdictRecord)]


def turn(number: int) -> Trace:
    return a_trace(
        trace_id=f"{number:032x}",
        digest=f"d{number}",
        start_time_unix_nano=number,
        output=f"answer {number}",
    )
