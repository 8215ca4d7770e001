"""How far scoring is behind, and traces that close at their time, whatever is done to the machine's clock."""

from pathlib import Path
from typing import Literal

import pytest

from collector.base.errors import LogUnavailable
from collector.base.telemetry import Telemetry
from collector.config.tree import Config, LogConfig, ReceiverConfig
from collector.log.memory import MemoryLog
from collector.log.port import SPANS, TRACES, Lag, New, Reader
from collector.service.logs import open_log
from collector.service.rooms import SCORING, ScoreLag, score_lag
from tests.support.clocks import Machine, SetClock


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


@pytest.mark.parametrize(("since", "lag"), [(1_040.0, 20), (10.0, 60)])
async def test_what_has_closed_and_is_not_written_waits_too_since_the_start_at_most(
    since: float, lag: float
) -> None:
    stand = Stand()
    stand.clock.now += 60
    stand.lag.unwritten = lambda: Lag(3, since)

    assert stand.lag() == lag


async def test_while_the_log_does_not_answer_what_waited_goes_on_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def away(*_: object, **__: object) -> Lag:
        raise LogUnavailable("away")

    stand = Stand()
    await stand.close()
    await stand.lag.measure()
    monkeypatch.setattr(stand.log, "lag", away)
    stand.clock.now += 9
    await stand.lag.measure()

    assert stand.lag() == 9


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
    machine, config = Machine(), Config(log=LogConfig(kind=kind), data_dir=tmp_path)
    record = New(topic=SPANS, key=b"k", value=b"v")
    log = await open_log(config, machine.clock(), Telemetry())
    await log.write([record])
    if restarts:
        await log.close()
    machine.set_clock(step)
    if restarts:
        log = await open_log(config, machine.clock(), Telemetry())
    reader = log.read("assembly", SPANS)
    machine.go_on(7)
    await log.write([record])
    machine.go_on(7)

    (first, second), end = await times(reader)

    assert second - first == pytest.approx(7 + (max(0.0, step) if restarts else 0.0))
    assert end - second == pytest.approx(7)
    await log.close()
