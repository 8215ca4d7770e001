"""How far scoring is behind, and traces that close at their time, whatever is done to the machine's clock."""

from pathlib import Path
from typing import Literal

import pytest

from collector.base.errors import LogUnavailable
from collector.base.telemetry import Telemetry
from collector.config.tree import Config, LogConfig, ReceiverConfig
from collector.log.memory import MemoryLog
from collector.log.port import SPANS, TRACES, Lag, Log, New, Reader
from collector.service.logs import open_log
from collector.service.rooms import SCORING, ScoreLag, score_lag
from tests.support.machine import Machine
from tests.support.ticking import SetClock


class Stand:
    """A log with what scoring reads, and the lag that is reported of it."""

    def __init__(self) -> None:
        self.clock = SetClock(1000.0)
        self.log = MemoryLog(clock=self.clock, groups={TRACES: frozenset({SCORING})})
        self.reader = self.log.read(SCORING, TRACES)
        self.lag = ScoreLag(self.log, self.clock)

    async def close(self) -> None:
        await self.log.write([New(topic=TRACES, key=b"", value=b"x")])


async def test_a_trace_waits_until_scoring_has_read_it() -> None:
    stand = Stand()
    await stand.reader.poll(timeout=0)
    await stand.close()
    stand.clock.now += 7
    await stand.lag.measure()
    assert stand.lag() == 7

    await stand.reader.poll(timeout=0)  # it is not committed: a slow trace holds up no other
    await stand.lag.measure()
    assert stand.lag() == 0


async def test_what_has_closed_and_is_not_written_waits_too() -> None:
    stand = Stand()
    stand.clock.now += 60
    stand.lag.unwritten = lambda: Lag(3, stand.clock.now - 20)

    assert stand.lag() == 20


async def test_what_closed_before_the_start_waits_since_then() -> None:
    stand = Stand()
    stand.lag.unwritten = lambda: Lag(1, 10.0)
    stand.clock.now += 5

    assert stand.lag() == 5


async def test_while_the_log_does_not_answer_what_waited_goes_on_waiting() -> None:
    class Away(MemoryLog):
        away = False

        async def lag(self, group: str, topic: str, *, unread: bool = False) -> Lag:
            if self.away:
                raise LogUnavailable("away")
            return await super().lag(group, topic, unread=unread)

    clock = SetClock(1000.0)
    log = Away(clock=clock, groups={TRACES: frozenset({SCORING})})
    lag = ScoreLag(log, clock)
    await log.write([New(topic=TRACES, key=b"", value=b"x")])
    await lag.measure()
    log.away = True
    clock.now += 9
    await lag.measure()

    assert lag() == 9


def test_it_is_known_where_one_process_does_everything(tmp_path: Path) -> None:
    clock = SetClock(1000.0)
    log = MemoryLog(clock=clock)
    whole = Config(data_dir=tmp_path)

    assert score_lag(whole, log, clock) is not None
    assert score_lag(whole.model_copy(update={"roles": ("receive",)}), log, clock) is None
    off = whole.model_copy(update={"receiver": ReceiverConfig(max_score_lag=None)})
    assert score_lag(off, log, clock) is None


Kind = Literal["disk", "memory"]
STEPS = [600.0, -600.0, 7_200.0, -7_200.0, 259_200.0, -259_200.0]


async def opened(machine: Machine, folder: Path, kind: Kind) -> Log:
    """By a process that is started now."""
    config = Config(log=LogConfig(kind=kind), data_dir=folder)
    return await open_log(config, machine.clock(), Telemetry())


async def appended(log: Log) -> None:
    await log.write([New(topic=SPANS, key=b"k", value=b"v")])


async def times(reader: Reader) -> tuple[list[float], float]:
    """Of the records that wait, and that of the end after them."""
    found: list[float] = []
    while True:
        batch = await reader.poll(timeout=0)
        found += [each.time for each in batch.records]
        if batch.ends and not batch.records:
            return found, batch.ends[0]


@pytest.mark.parametrize(("kind", "restarts"), [("disk", False), ("memory", False), ("disk", True)])
@pytest.mark.parametrize("step", STEPS)
async def test_the_end_of_a_partition_goes_on_by_elapsed_seconds(
    tmp_path: Path, step: float, kind: Kind, *, restarts: bool
) -> None:
    machine = Machine()
    log = await opened(machine, tmp_path, kind)
    await appended(log)
    if restarts:
        await log.close()
    machine.set_clock(step)
    if restarts:
        log = await opened(machine, tmp_path, kind)
    reader = log.read("assembly", SPANS)
    machine.go_on(7)
    await appended(log)
    machine.go_on(7)

    (first, second), end = await times(reader)

    assert second - first == pytest.approx(7 + (max(0.0, step) if restarts else 0.0))
    assert end - second == pytest.approx(7)
    await log.close()
