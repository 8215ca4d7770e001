"""How far each group is behind: measured beside the rooms, so that neither they nor a scrape wait for the log.

    every 2 s: log.lag of each group -> records, append time of the oldest
    a scrape:                           records, now - that time

While the log does not answer, what waited goes on waiting: its age grows. Of a group for which nothing waited it is not
known any more whether something does: its series end until the log answers again.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field

from collector.base.clock import Clock, until_tick
from collector.base.errors import Retryable
from collector.log.families import LogFamilies
from collector.log.port import Lag, Log

EVERY = 2.0  # seconds between two measurements
PATIENCE = 5.0  # seconds that a measurement of all groups may take


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedGroup:
    group: str
    topic: str
    unread: bool = False  # see `port.Log.lag`
    held: Callable[[], Lag] = Lag
    """What its room has read and should have finished, where its commit does not say it."""


@dataclass(slots=True)
class LagMeter:
    """Sets `spanwise_log_lag_records` and `spanwise_log_lag_seconds` of the groups that this process answers for."""

    log: Log
    watched: Sequence[WatchedGroup]
    _: KW_ONLY
    families: LogFamilies
    clock: Clock  # that ages are measured by
    every: float = EVERY
    patience: float = PATIENCE
    _waits: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]], init=False)
    """Groups for which something waited when the log last answered, with their topics."""

    async def run(self, stopping: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as tasks:
            measuring = tasks.create_task(self._measure_again_and_again())
            await stopping.wait()
            measuring.cancel()

    async def measure(self) -> None:
        """Measure every group once; those that the log says nothing of in time are not known."""
        unknown = list(self.watched)
        with suppress(TimeoutError):
            async with asyncio.timeout(self.patience):
                for each in self.watched:
                    if await self._measured(each):
                        unknown.remove(each)
        for each in unknown:
            if (each.group, each.topic) not in self._waits:
                self._forget(each)

    async def _measure_again_and_again(self) -> None:
        while True:
            await self.measure()
            await asyncio.sleep(until_tick(self.every))

    async def _measured(self, each: WatchedGroup) -> bool:
        try:
            lag = await self.log.lag(each.group, each.topic, unread=each.unread)
        except Retryable:
            return False
        if lag is None:
            self._forget(each)
        else:
            self._show(each, _together(lag, each.held()))
        return True

    def _show(self, each: WatchedGroup, lag: Lag) -> None:
        labels = each.group, each.topic
        self.families.lag_records.labels(*labels).set(lag.records)
        oldest = lag.oldest
        if oldest is None:
            self._waits.discard(labels)
            self.families.lag_seconds.labels(*labels).set_function(lambda: 0.0)
            return
        self._waits.add(labels)
        age = lambda: max(0.0, self.clock() - oldest)  # noqa: E731 - one expression, evaluated at the scrape
        self.families.lag_seconds.labels(*labels).set_function(age)

    def _forget(self, each: WatchedGroup) -> None:
        labels = each.group, each.topic
        self._waits.discard(labels)
        self.families.lag_records.remove(*labels)
        self.families.lag_seconds.remove(*labels)


def _together(one: Lag, other: Lag) -> Lag:
    times = [each for each in (one.oldest, other.oldest) if each is not None]
    return Lag(one.records + other.records, min(times, default=None))
