"""What the logs of the suite are made with."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from collector.base.telemetry import Telemetry
from collector.log.disk.disk_log import DiskLog
from tests.support.disk_log import SMALL, Open
from tests.support.log_steps import GROUPS
from tests.support.ticking import SetClock


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


@pytest.fixture
async def open_log(clock: SetClock, telemetry: Telemetry, tmp_path: Path) -> AsyncIterator[Open]:
    """Opens the log in `tmp_path`; whatever is open at the end is closed."""
    opened: list[DiskLog] = []

    async def open_one(max_size: int = SMALL, partitions: int = 1) -> DiskLog:
        log = await DiskLog.open(
            tmp_path,
            max_size=max_size,
            clock=clock,
            telemetry=telemetry,
            groups=GROUPS,
            partitions=partitions,
        )
        opened.append(log)
        return log

    yield open_one
    for log in opened:
        await log.close()
