"""Begins the subjects of the judging room in fair order, each in a task of its own, and holds those that wait."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from collector.base.clock import Clock
from collector.config.tree import JudgeConfig
from collector.judging.budget import Budget
from collector.judging.subjects import Content, JudgedSubject, Progress

T = TypeVar("T")


class SubjectQueue(Generic[T]):
    """Subjects that wait, by service, and how many of each service are under way.

    At most `concurrency` are under way. Those of services above their share may have to wait for a call in the middle:
    they hold no place against a service within its share, up to twice `concurrency` in all.
    """

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self._waiting: OrderedDict[str, deque[T]] = OrderedDict()
        """The service whose turn is next comes first."""
        self._count = 0
        self._under_way: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._count

    @property
    def contenders(self) -> frozenset[str]:
        is_full = self._under_way.total() >= 2 * self._concurrency
        return frozenset() if is_full else frozenset(self._waiting)

    def add(self, service: str, subject: T) -> None:
        self._waiting.setdefault(service, deque()).append(subject)
        self._count += 1

    def begin(self, is_within_share: Callable[[str], bool]) -> T | None:
        """The subject to begin now, if any: it is under way until `end`. Services within their share come first."""
        service = self._next(is_within_share)
        if service is None:
            return None
        self._under_way[service] += 1
        return self._pop(service)

    def end(self, service: str) -> None:
        self._under_way[service] -= 1
        if not self._under_way[service]:
            del self._under_way[service]

    def let_go(self, least: int) -> T | None:
        """Remove the oldest subject of the service with the most waiting, if these are at least `least`."""
        service = max(self._waiting, key=lambda each: len(self._waiting[each]), default=None)
        if service is None or len(self._waiting[service]) < least:
            return None
        return self._pop(service, keeps_turn=True)

    def drop(self, is_gone: Callable[[T], bool]) -> list[T]:
        """Remove the subjects that wait and are gone; returns them."""
        gone: list[T] = []
        for service, subjects in [*self._waiting.items()]:
            kept: deque[T] = deque()
            for each in subjects:
                (gone if is_gone(each) else kept).append(each)
            if kept:
                self._waiting[service] = kept
            else:
                del self._waiting[service]
        self._count -= len(gone)
        return gone

    def clear(self) -> None:
        self._waiting.clear()
        self._under_way.clear()
        self._count = 0

    def _next(self, is_within_share: Callable[[str], bool]) -> str | None:
        within = next(filter(is_within_share, self._waiting), None)
        under_way = self._under_way.total()
        if under_way < self._concurrency:
            return within if within is not None else next(iter(self._waiting), None)
        moving = sum(count for each, count in self._under_way.items() if is_within_share(each))
        has_place = moving < self._concurrency and under_way < 2 * self._concurrency
        return within if has_place else None

    def _pop(self, service: str, *, keeps_turn: bool = False) -> T:
        subjects = self._waiting[service]
        subject = subjects.popleft()
        self._count -= 1
        if not subjects:
            del self._waiting[service]
        elif not keeps_turn:
            self._waiting.move_to_end(service)
        return subject


READ_AHEAD = 4096  # subjects that wait at most, about 1 KB each
MOMENT = 0.5  # seconds after which it looks again who may begin: shares change with time

Judging = Callable[[JudgedSubject, Content | None], Coroutine[None, None, None]]
"""Judges one subject. Content None: it waited, and its content must be read back."""


@dataclass(eq=False)
class Dispatcher:
    """At most `judge.concurrency` subjects are under way; the others wait, services in turn.

    `config`: concurrency, `max_lag`, the rate. `budget`: says which services are within their share, and learns which
    ones wait. `clock`: the log's clock, for the age of subjects.
    """

    config: JudgeConfig
    budget: Budget
    clock: Clock
    budget_clock: Clock
    judge: Judging

    def __post_init__(self) -> None:
        self._queue: SubjectQueue[JudgedSubject] = SubjectQueue(self.config.concurrency)
        in_time = self.config.budget.calls_per_minute * self.config.max_lag / 60
        self._most = max(READ_AHEAD // 4, int(in_time))
        """Waiting subjects of one service beyond which the oldest comes too late whatever happens."""
        self._tasks = asyncio.TaskGroup()
        self._lets_go = False
        self._has_ended = asyncio.Event()

    def start(self, tasks: asyncio.TaskGroup, *, lets_go: bool) -> None:
        """Begin again, with nothing waiting.

        `lets_go`: whether subjects that must come too late are passed over when READ_AHEAD wait; else all wait.
        """
        self._queue.clear()
        self._tasks = tasks
        self._lets_go = lets_go
        self.begin()

    def is_in_time(self, time: float) -> bool:
        """Whether scoring still waits for the verdict about a record of this log time."""
        return time + self.config.max_lag > self.clock()

    async def add(self, subject: JudgedSubject, content: Content) -> None:
        """Let the subject wait for its turn; waits itself while READ_AHEAD subjects do."""
        while len(self._queue) >= READ_AHEAD:
            await self._make_room()
        subject.progress.begin(subject.position.offset)
        self._queue.add(subject.service, subject)
        self.begin(subject, content)

    def begin(self, fresh: JudgedSubject | None = None, content: Content | None = None) -> None:
        """Begin every subject whose turn it is, which changes with time; `content` is that of `fresh`."""
        is_within_share = partial(self.budget.is_within_share, self.budget_clock())
        while subject := self._queue.begin(is_within_share):
            known = content if subject is fresh else None
            self._tasks.create_task(self._run(subject, known))
        self.budget.waits(self, self._queue.contenders)

    def drop(self, progress: Progress) -> None:
        """The partition has another owner: its subjects that wait are judged there."""
        self._queue.drop(lambda each: each.progress is progress)

    async def settle(self) -> None:
        while self._queue:
            await self.look()

    async def look(self) -> None:
        """Begin what can be, then wait until a subject has ended or a moment has passed."""
        self._has_ended.clear()
        self.begin()
        with suppress(TimeoutError):
            async with asyncio.timeout(MOMENT):
                await self._has_ended.wait()

    async def _make_room(self) -> None:
        """Pass over what comes too late, for which scoring says `judge_lag`; else wait."""
        passed = self._queue.drop(lambda each: not self.is_in_time(each.time))
        if self._lets_go and not passed:
            oldest = self._queue.let_go(self._most)
            passed = [] if oldest is None else [oldest]
        for each in passed:
            each.progress.end(each.position.offset)
        if not passed:
            await self.look()

    async def _run(self, subject: JudgedSubject, content: Content | None) -> None:
        try:
            await self.judge(subject, content)
        finally:
            self._queue.end(subject.service)
            self._has_ended.set()
        subject.progress.end(subject.position.offset)
        self.begin()
