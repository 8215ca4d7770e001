"""The disk log keeps the contract, and what it holds outlives it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from collector.log.disk.disk_log import DiskLog
from collector.log.port import TRACES, Log
from collector.telemetry import Telemetry
from tests.support.log_contract import GROUPS, PARTITIONS
from tests.support.owned_log_contract import OwnedLogContract
from tests.support.ticking import SetClock


class TestDiskLog(OwnedLogContract):
    @pytest.fixture
    async def log(
        self, clock: SetClock, telemetry: Telemetry, tmp_path: Path
    ) -> AsyncIterator[Log]:
        log = await DiskLog.open(
            tmp_path / "log",
            max_size=256 << 20,
            clock=clock,
            telemetry=telemetry,
            groups=GROUPS,
            partitions=PARTITIONS,
        )
        yield log
        await log.close()

    @pytest.fixture
    async def small(
        self, clock: SetClock, telemetry: Telemetry, tmp_path: Path
    ) -> AsyncIterator[Log]:
        log = await DiskLog.open(
            tmp_path / "small",
            max_size=8 << 20,
            clock=clock,
            telemetry=telemetry,
            groups=GROUPS,
        )
        yield log
        await log.close()

    @pytest.fixture
    async def patient(
        self, clock: SetClock, telemetry: Telemetry, tmp_path: Path
    ) -> AsyncIterator[Log]:
        log = await DiskLog.open(
            tmp_path / "patient",
            max_size=8 << 20,
            clock=clock,
            telemetry=telemetry,
            groups=GROUPS,
            waits_for={TRACES: frozenset({"scoring"})},
        )
        yield log
        await log.close()
