"""Traces close at their time on disk and in memory, whatever is done to the machine's clock."""

from pathlib import Path
from typing import Literal

import pytest

from collector.base.telemetry import Telemetry
from collector.config.tree import Config, LogConfig
from collector.log.port import SPANS, Log, New, Reader
from collector.service.logs import open_log
from tests.support.machine import Machine

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
