"""The disk log keeps the contract, and what it holds outlives it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from collector.base.errors import LogUnavailable
from collector.base.telemetry import Telemetry
from collector.log.disk.disk_log import DiskLog
from collector.log.port import SPANS, Lag, Log
from tests.support.disk_log import Open
from tests.support.log_steps import GROUPS, commit_to, new
from tests.support.owned_log_contract import OwnedLogContract
from tests.support.ticking import SetClock


class TestDiskLog(OwnedLogContract):
    async def opened(
        self, folder: Path, clock: SetClock, telemetry: Telemetry, **settings: Any
    ) -> Log:
        return await DiskLog.open(
            folder, clock=clock, telemetry=telemetry, groups=GROUPS, **settings
        )


async def test_a_disk_that_hangs_holds_up_one_look_for_lag_and_not_the_event_loop(
    open_log: Open,
) -> None:
    log = await open_log()
    (position,) = await log.write([new(SPANS, b"waits")])
    with log._store._lock:  # a page that never comes
        looking = asyncio.create_task(log.lag("assembly", SPANS))
        await asyncio.sleep(0)
        for _ in range(3):
            with pytest.raises(LogUnavailable):
                async with asyncio.timeout(10):
                    await log.lag("assembly", SPANS)
    found = await looking

    assert found == Lag(1, 1000.0)
    await commit_to(log, "assembly", SPANS, position.offset + 1)
    assert await log.lag("assembly", SPANS) == Lag()


async def test_a_range_of_a_value_is_read_while_its_record_is_there(open_log: Open) -> None:
    log = await open_log()
    value = bytes(range(256)) * 80
    (position,) = await log.write([new(SPANS, value)])

    places = [(0, 5000, 9000), (0, 0, len(value)), (0, 0, len(value) + 1), (7, 0, 1)]
    read = await log.values_of(
        SPANS, [(0, position.offset + at, start, end) for at, start, end in places]
    )

    assert read == [value[5000:9000], value, None, None]
