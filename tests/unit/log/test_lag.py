"""The gauges of lag: what they say while the log answers, and while it does not."""

import asyncio
from collections.abc import Mapping, Sequence

from collector.base.errors import LogUnavailable
from collector.base.telemetry import Telemetry
from collector.config.tree import Config
from collector.log.families import LogFamilies
from collector.log.lag import LagMeter, WatchedGroup
from collector.log.memory import MemoryLog
from collector.log.port import SIGNALS, SPANS, TRACES, Commit, Lag, New
from collector.service.logs import groups, lag_meter
from tests.support.clocks import SetClock, eventually

MINUTE = 60.0


class TellingLog(MemoryLog):
    """Says what the test tells it; raises while it has no answer, waits while it hangs."""

    def __init__(self) -> None:
        super().__init__(clock=SetClock())
        self.lags: dict[str, Lag | None] = {}
        self.hangs = False

    async def lag(self, group: str, topic: str, *, unread: bool = False) -> Lag | None:  # pyright: ignore[reportIncompatibleMethodOverride] - None: as a shared log
        del topic, unread
        if self.hangs:
            await asyncio.Event().wait()
        if group not in self.lags:
            raise LogUnavailable("away")
        return self.lags[group]


class Stand:
    """A meter of two groups, its clock and what is scraped."""

    def __init__(self, *, held: Lag = Lag()) -> None:  # noqa: B008 - a value
        self.clock = SetClock(1000.0)
        self.log = TellingLog()
        self.telemetry = Telemetry()
        self.meter = LagMeter(
            self.log,
            [
                WatchedGroup(group="scoring", topic=TRACES),
                WatchedGroup(group="assembly", topic=SPANS, held=lambda: held),
            ],
            families=LogFamilies(self.telemetry),
            clock=self.clock,
            every=0.01,
            patience=0.05,
        )

    async def measured(self, **lags: Lag | None) -> None:
        """Measure while the log says this of each group; it has no answer for others."""
        self.log.lags = lags
        await self.meter.measure()

    @property
    def scoring(self) -> tuple[float | None, float | None]:
        return shown(self.telemetry, "scoring", TRACES)

    @property
    def assembly(self) -> tuple[float | None, float | None]:
        return shown(self.telemetry, "assembly", SPANS)


def shown(telemetry: Telemetry, group: str, topic: str) -> tuple[float | None, float | None]:
    """Records and seconds, as a scrape gives them."""
    labels: Mapping[str, str] = {"group": group, "topic": topic}
    value = telemetry.registry.get_sample_value
    return (
        value("spanwise_log_lag_records", dict(labels)),
        value("spanwise_log_lag_seconds", dict(labels)),
    )


async def test_age_grows_between_two_measurements_and_falls_to_nothing() -> None:
    stand = Stand()
    await stand.measured(scoring=Lag(3, 940.0), assembly=Lag())
    assert stand.scoring == (3, 60.0)

    stand.clock.now += 10 * MINUTE
    assert stand.scoring == (3, 660.0)

    await stand.measured(scoring=Lag(), assembly=Lag())
    assert stand.scoring == stand.assembly == (0, 0)


async def test_a_clock_that_jumps_back_makes_no_negative_age() -> None:
    stand = Stand()
    await stand.measured(scoring=Lag(1, 2000.0), assembly=Lag())

    assert stand.scoring == (1, 0)


async def test_while_the_log_is_away_what_waits_grows_old_and_what_is_unknown_is_absent() -> None:
    stand = Stand()
    await stand.measured(scoring=Lag(3, 940.0), assembly=Lag())

    stand.clock.now += MINUTE
    await stand.measured()
    assert (stand.scoring, stand.assembly) == ((3, 120.0), (None, None))

    await stand.measured(scoring=Lag(), assembly=Lag(1, 1000.0))
    assert (stand.scoring, stand.assembly) == ((0, 0), (1, 60.0))


async def test_a_log_that_hangs_holds_up_neither_a_scrape_nor_the_stop() -> None:
    stand = Stand()
    stand.log.lags = {"scoring": Lag(3, 940.0), "assembly": Lag()}
    stopping = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(stand.meter.run(stopping))
        await eventually(lambda: stand.assembly == (0, 0))

        stand.log.hangs = True
        await eventually(lambda: stand.assembly == (None, None))

        assert stand.scoring == (3, 60.0)
        stopping.set()
        await asyncio.wait_for(running, 5)


async def test_a_group_that_another_process_answers_for_is_absent() -> None:
    stand = Stand()
    await stand.measured(scoring=Lag(3, 940.0), assembly=Lag())

    await stand.measured(scoring=None, assembly=Lag())
    assert stand.scoring == (None, None)

    await stand.measured()
    assert stand.scoring == (None, None)


async def test_what_a_room_holds_counts_too() -> None:
    stand = Stand(held=Lag(4, 400.0))
    await stand.measured(scoring=Lag(), assembly=Lag(2, 500.0))

    assert stand.assembly == (6, 600.0)


def watched(roles: Sequence[str]) -> set[str]:
    config = Config.model_validate(
        {"roles": roles, "log": {"kind": "kafka", "kafka": {"bootstrap_servers": "k:9092"}}}
    )
    log = MemoryLog(clock=SetClock())
    meter = lag_meter(log, config, unwritten=Lag, telemetry=Telemetry(), clock=SetClock())
    return {each.group for each in meter.watched}


def test_on_kafka_each_role_answers_for_its_groups_and_publish_for_all() -> None:
    assert watched(["score"]) == {"scoring"}
    assert watched(["assemble"]) == {"assembly"}
    assert watched(["receive", "assemble"]) == {"assembly", "logs"}
    assert watched(["publish"]) >= {"assembly", "scoring", "ranking", "api.signals"}


async def test_ten_minutes_of_unscored_traces_show_in_a_process_that_does_not_score() -> None:
    """A log of one process answers for every group that is configured: what no room reads waits in the log."""
    config = Config.model_validate({"roles": ["receive", "assemble"], "log": {"kind": "memory"}})
    clock, telemetry = SetClock(1000.0), Telemetry()
    log = MemoryLog(clock=clock, telemetry=telemetry, groups=groups(config))
    meter = lag_meter(log, config, unwritten=Lag, telemetry=telemetry, clock=clock)
    (position,) = await log.write([New(topic=TRACES, key=b"s", value=b"trace")])
    clock.now += 10 * MINUTE + 1
    await log.write([New(topic=TRACES, key=b"s", value=b"trace")])

    await meter.measure()
    read_ahead = {each.group for each in meter.watched if each.unread}
    waiting = shown(telemetry, "scoring", TRACES)
    commit = Commit(group="scoring", topic=TRACES, partition=0, offset=position.offset + 2)
    await log.write([], [commit])
    await meter.measure()

    assert waiting == (2, 601.0)
    assert read_ahead == {
        "assembly",
        "sink.prometheus",
    }  # their commits stand behind what they have taken in
    assert shown(telemetry, "scoring", TRACES) == (0, 0)
    assert shown(telemetry, "judging", TRACES) == (None, None)  # no judge is configured
    assert shown(telemetry, "sink.prometheus", SIGNALS) == (0, 0)
    assert shown(telemetry, "assembly", "closings") == (None, None)
    await log.close()
