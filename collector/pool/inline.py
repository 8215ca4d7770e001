"""`workers: 0`, and offline: evaluators run inside the calling process."""

from __future__ import annotations

from collections.abc import Sequence

from collector.pool.jobs import Bench
from collector.pool.port import ReadJob, ScoreJob
from evaluators.model import Outcome, Trace


class InlineWorkers:
    """The `Workers` port without processes. A job that hangs hangs its caller: meant for tests and small loads."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    async def read(self, jobs: Sequence[ReadJob]) -> Sequence[Trace | None]:
        """See the port."""
        return [self._bench.read(job) for job in jobs]

    async def score(self, jobs: Sequence[ScoreJob]) -> Sequence[tuple[Outcome, ...]]:
        """See the port."""
        return [self._bench.score(job) for job in jobs]

    async def close(self) -> None:
        """Nothing to end."""
