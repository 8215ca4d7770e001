"""From configuration to the log.

A new adapter is a file under `collector/log/`, its kind in `config.LogConfig` and its row in `LOGS`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from collector.clock import Clock
from collector.config.tree import Config
from collector.log.disk.disk_log import DiskLog
from collector.log.kafka.kafka_log import KafkaLog
from collector.log.memory import MemoryLog
from collector.log.port import Log
from collector.telemetry import Telemetry
from collector.wiring.groups import WAITS_FOR, groups

MEMORY_SIZE = 512 << 20
"""Bytes that the memory log holds."""

Open = Callable[[Config, Clock, Telemetry], Awaitable[Log]]


async def _disk(config: Config, clock: Clock, telemetry: Telemetry) -> Log:
    return await DiskLog.open(
        config.data_dir / "log",
        max_size=config.log.disk.max_size,
        clock=clock,
        telemetry=telemetry,
        groups=groups(config),
        waits_for=WAITS_FOR,
    )


async def _kafka(config: Config, clock: Clock, telemetry: Telemetry) -> Log:
    return await KafkaLog.open(config.log.kafka, clock=clock, telemetry=telemetry)


async def _memory(config: Config, clock: Clock, telemetry: Telemetry) -> Log:
    return MemoryLog(
        clock=clock,
        max_size=MEMORY_SIZE,
        telemetry=telemetry,
        groups=groups(config),
        waits_for=WAITS_FOR,
    )


LOGS: dict[str, Open] = {"disk": _disk, "kafka": _kafka, "memory": _memory}
"""By `log.kind`, how the log is opened."""


async def open_log(config: Config, clock: Clock, telemetry: Telemetry) -> Log:
    """The log that the configuration names.

    Raises:
        ConfigError: it cannot be opened.
        KeyError: the kind has no row in `LOGS`.
    """
    return await LOGS[config.log.kind](config, clock, telemetry)
