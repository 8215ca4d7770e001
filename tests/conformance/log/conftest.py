"""What the logs of the suite are made with."""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from collector.base.clock import wall
from collector.base.telemetry import Telemetry
from collector.config.tree import KafkaLogConfig
from collector.log.disk.disk_log import DiskLog
from collector.log.kafka.kafka_log import KafkaLog
from tests.support.clocks import SetClock
from tests.support.log_steps import GROUPS

SMALL = 8 << 20
"""Bytes of a log that is full soon."""
Open = Callable[..., Awaitable[DiskLog]]
"""Opens a disk log in the test's folder; takes `max_size` and `partitions`."""
Opening = Callable[..., Awaitable[KafkaLog]]


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


@pytest.fixture
async def opening() -> AsyncIterator[Opening]:
    """Opens logs on one set of topics, each as a process of its own would."""
    name = uuid.uuid4().hex[:8]
    async with AsyncExitStack() as logs:

        async def open_one(
            bootstrap: str,
            *,
            deadline: float = 10.0,
            telemetry: Telemetry | None = None,
            instance: str | None = None,
            partitions: int = 1,
        ) -> KafkaLog:
            settings = KafkaLogConfig(
                bootstrap_servers=bootstrap,
                topic_prefix=f"{name}.",
                group=name,
                instance=instance,
                partitions=partitions,
                session_timeout=6.0,
            )
            log = await KafkaLog.open(
                settings, clock=wall, telemetry=telemetry or Telemetry(), deadline=deadline
            )
            logs.push_async_callback(log.close)
            return log

        yield open_one
