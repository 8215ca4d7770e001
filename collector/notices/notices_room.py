"""The alerts of this process, sent to the targets of `notify`. Role `publish` alone, which holds their state.

every 15 s: the families' samples -> what holds -> alarms -> topic `windows`
per target, at most once a second: what it was not sent yet -> sent -> topic `windows`
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from itertools import chain, product
from typing import get_args

from collector.base import watch
from collector.base.clock import Clock, until_tick
from collector.base.errors import Undecodable
from collector.base.retry import Retry
from collector.base.telemetry import Telemetry
from collector.base.time_slice import TimeSlice
from collector.config.notify import Notify, NotifyTarget
from collector.log.consumer import PoisonReport
from collector.log.port import WINDOWS, Log, New, Record
from collector.notices.alarms import Alarms, RaisedAlert, Result
from collector.notices.conditions import FAMILIES, GROWTHS, found_in
from collector.notices.families import NoticeFamilies
from collector.notices.messenger import Messenger, TargetLoop
from collector.notices.notice import Notice
from collector.notices.series import Series, SeriesSample
from collector.records.notices import NOTICES, AlarmRecord, Labels, decode_alarm
from collector.records.standing import WORST, Standing, Standings
from collector.slo.rules import HELP

EVERY = 15.0  # seconds between two looks


@dataclass
class NoticesRoom:
    """`caught_up`: whether the gauges say what they said before a restart; `wall`: the machine's clock."""

    settings: Notify
    _: KW_ONLY
    log: Log
    telemetry: Telemetry
    standings: Callable[[], Standings]
    caught_up: Callable[[], bool]
    clock: Clock
    wall: Clock

    def __post_init__(self) -> None:
        self._retry = Retry("The room of notices")
        self._poison = PoisonReport(self.telemetry)
        self._families = NoticeFamilies(self.telemetry)
        targets = self.settings.to
        for name, result in product(targets, get_args(Result)):
            self._families.notices.labels(name, result)
        self._alarms = Alarms({name: wanted_by(each) for name, each in targets.items()})
        self._series = Series(GROWTHS)
        self._slice = TimeSlice()

    async def run(self, stopping: asyncio.Event) -> None:
        self._retry.stopping = stopping
        await self._retry.log("read back what was sent", self._restore)
        target_loops = (
            TargetLoop(
                Messenger(name, each),
                self._alarms,
                notice=self._notice,
                store=self._store,
                clock=self.clock,
                wall=self.wall,
            )
            for name, each in self.settings.to.items()
        )
        sending = (each.run(stopping) for each in target_loops)
        await watch.together("notices", stopping, self._look(stopping), *sending)

    async def _look(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            if self.caught_up():
                await self.look()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._alarms.wait(self.clock(), until_tick(EVERY))):
                    await stopping.wait()

    async def look(self) -> None:
        samples: list[SeriesSample] = []
        for family in self.telemetry.registry.restricted_registry(sorted(FAMILIES)).collect():
            samples += [SeriesSample(each.name, each.labels, each.value) for each in family.samples]
            await self._slice.give_way()
        self._series.take(samples, self.clock())
        self._alarms.look(found_in(self._series, self.settings.alerts), self._series)
        await self._store()

    async def _store(self) -> None:
        """Keep what was sent, then count it: a notice that is counted is not sent again after a crash."""
        counts = Counter(self._alarms.counts)
        self._alarms.counts.clear()
        pending = self._alarms.pending()
        records = [New(topic=WINDOWS, key=key, value=each) for key, each in pending.items()]
        if records:
            await self._retry.log("store what was sent", lambda: self.log.write(records))
        for (target, result), count in counts.items():
            self._families.notices.labels(target, result).inc(count)

    def _notice(self, alarm: RaisedAlert) -> Notice:
        page = self.settings.page and self.settings.page.rstrip("/")
        name = dict(alarm.labels)["alertname"].lower()
        return Notice(
            labels=alarm.labels,
            state=alarm.state,
            start=alarm.since if alarm.start is None else alarm.start,
            end=alarm.end,
            summary=alarm.summary,
            description=alarm.description,
            runbook=page and f"{page}{HELP}#{name}",
            page=page and f"{page}{alarm.page}",
            facts=_facts(self._standing(alarm)),
            sessions=_sessions(self._standing(alarm), dict(alarm.labels)),
        )

    def _standing(self, alarm: RaisedAlert) -> Standing | None:
        labels = dict(alarm.labels)
        return self.standings().get((labels.get("service", ""), labels.get("agent", "")))

    async def _restore(self) -> None:
        newest: dict[bytes, Record] = {}
        for partition in range(self.log.partitions(WINDOWS)):
            async for record in self.log.replay(WINDOWS, partition):
                if record.key.startswith(NOTICES):
                    newest[record.key] = record
        self._alarms.restore(self._read(newest.values()))

    def _read(self, records: Iterable[Record]) -> Iterator[AlarmRecord]:
        for record in records:
            if record.value:
                try:
                    yield decode_alarm(record.value)
                except Undecodable as error:
                    self._poison.unprocessable(record.position, error)


def wanted_by(settings: NotifyTarget) -> Callable[[Labels], bool]:
    def accepts(labels: Labels) -> bool:
        given = dict(labels)
        return (settings.only is None or given["alertname"] in settings.only) and (
            settings.severity is None or given["severity"] == settings.severity
        )

    return accepts


def _facts(standing: Standing | None) -> dict[str, float]:
    mean = None if standing is None else standing.window_reliability or standing.reliability
    if mean is None:
        return {}
    return {
        "mean": mean.mean,
        "lower_bound": mean.lower,
        "upper_bound": mean.upper,
        "samples": mean.samples,
    }


def _sessions(standing: Standing | None, labels: Mapping[str, str]) -> tuple[str, ...]:
    """Those that show a fault, or a drop: those of its cause, else its own; the worst first."""
    if standing is None:
        return ()
    of_scope = (each for each in standing.drops if each.scope == labels.get("scope"))
    drops = sorted(
        (each for each in of_scope if each.direction == "worse"), key=lambda each: each.mean_rank
    )
    asked = {(labels.get("fault"), labels.get("tool", "")), *(each.cause for each in drops)}
    shown = [each.worst for each in standing.faults if (each.fault, each.tool) in asked]
    shown += [each.worst for each in drops]
    return tuple(dict.fromkeys(chain.from_iterable(shown)))[:WORST]
