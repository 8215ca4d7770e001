"""Jobs that wait for a worker, and which go next: the fair order between services. Pure: it takes `now`, in seconds.

    put --> the service's line, second tries behind the others --> take --> a worker's batch

Jobs go in the order in which they came, but while several services have jobs, one that used more worker time lately
than its share, beside the one that used the least, waits. With a share of a half the one that used the least goes
first. A service alone uses every worker.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

WINDOW = 10.0  # seconds in which worker time that was used counts 1/e of what it did
BATCH = 8  # the most jobs that a worker is sent before it has answered
BATCH_SECONDS = 0.2
"""The most worker time that a batch is expected to take: it cannot be taken back when another service has a job."""
KNOWN = 256  # services without a job whose worker time is remembered: those that used the most


class Queued(Protocol):
    @property
    def service(self) -> str: ...


T = TypeVar("T", bound=Queued)


class _Line(Generic[T]):
    """One service's jobs, and the worker time that it used."""

    __slots__ = ("answered", "at", "jobs", "running", "seconds")

    def __init__(self, now: float) -> None:
        self.jobs: deque[tuple[int, T]] = deque()
        """With their numbers, in the order in which they came."""
        self.running: dict[T, float] = {}  # a job under way, and since when
        self.seconds = 0.0  # worker time used, decayed to `at`
        self.answered = 0.0  # jobs that used it, decayed alike
        self.at = now

    def used(self, now: float) -> float:
        """Worker seconds lately, those of the jobs under way included."""
        under_way = sum(now - since for since in self.running.values())
        return self.seconds * _left(now - self.at) + under_way

    def add(self, seconds: float, jobs: int, now: float) -> None:
        left = _left(now - self.at)
        self.seconds = self.seconds * left + seconds
        self.answered = self.answered * left + jobs
        self.at = now

    def expected(self) -> float:
        """Seconds of its next job, by those before it; without any, as long as a batch may take."""
        return self.seconds / self.answered if self.answered > 1e-9 else BATCH_SECONDS


class JobQueue(Generic[T]):
    """The jobs that wait. It is bounded by those who put jobs, and wait for their answers.

    `share`: of the worker time that it and another one use, what one service may have while the other one waits; 0 to
    1, where 1 is the order of arrival and less than a half is a half.
    """

    def __init__(self, share: float) -> None:
        self._ratio = max(1.0, share / (1 - share)) if share < 1 else math.inf
        """How many times the worker time of one that waits another may use."""
        self._lines: dict[str, _Line[T]] = {}
        self._size = 0
        self._number = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[T]:
        for line in self._lines.values():
            yield from (job for _, job in line.jobs)

    def put(self, job: T, now: float) -> None:
        self._number += 1
        self._line(job.service, now).jobs.append((self._number, job))
        self._size += 1

    def put_back(self, jobs: Iterable[T], now: float) -> None:
        """Jobs that were taken and never begun go before all jobs of their services, in their order."""
        for job in reversed(list(jobs)):
            self._line(job.service, now).jobs.appendleft((0, job))
            self._size += 1

    def take(self, now: float, *, workers: int) -> list[T]:
        """The next batch for one of so many workers: one job if any waits, and no more than its part of all."""
        most = min(BATCH, -(-self._size // workers))
        used = {service: line.used(now) for service, line in self._lines.items() if line.jobs}
        batch: list[T] = []
        left = BATCH_SECONDS
        while len(batch) < most:
            service = self._next(used)
            line = self._lines[service]
            seconds = line.expected()
            if batch and seconds > left:
                break
            left -= seconds
            used[service] += seconds
            batch.append(line.jobs.popleft()[1])
            self._size -= 1
            if not line.jobs:
                del used[service]
        return batch

    def began(self, job: T, now: float) -> None:
        self._line(job.service, now).running[job] = now

    def ended(self, job: T, now: float) -> None:
        """The worker answered it, or was given up on it: its service is charged for the time since it began."""
        line = self._line(job.service, now)
        since = line.running.pop(job, now)
        line.add(now - since, 1, now)

    def charge(self, service: str, seconds: float, now: float) -> None:
        """A service cost that much worker time beside its jobs: a worker had to be started again."""
        self._line(service, now).add(seconds, 0, now)

    def _next(self, used: dict[str, float]) -> str:
        """Of the services with jobs, the one whose turn it is; `used` are their worker seconds."""
        least = min(used.values())
        most = least * self._ratio if least else least
        within = (service for service in used if used[service] <= most)
        return min(within, key=lambda service: self._lines[service].jobs[0][0])

    def _line(self, service: str, now: float) -> _Line[T]:
        line = self._lines.get(service)
        if line is None:
            if len(self._lines) >= 2 * KNOWN:
                self._forget(now)
            line = self._lines[service] = _Line(now)
        return line

    def _forget(self, now: float) -> None:
        idle = [name for name, line in self._lines.items() if not line.jobs and not line.running]
        idle.sort(key=lambda name: self._lines[name].used(now))
        for name in idle[: max(0, len(idle) - KNOWN)]:
            del self._lines[name]


def _left(seconds: float) -> float:
    return math.exp(-max(0.0, seconds) / WINDOW)
