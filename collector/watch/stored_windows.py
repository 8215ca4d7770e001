"""Reads the windows, the task runs and the open runaways back from topic `windows`."""

from __future__ import annotations

from collector.base.errors import Undecodable
from collector.log.consumer import PoisonReport
from collector.log.port import WINDOWS, Log, Record
from collector.records.drift import DROPS
from collector.records.faults import FAULTS
from collector.records.notices import NOTICES
from collector.records.windows import (
    RANKED,
    RUNAWAYS,
    SLOTS,
    TASK,
    VERSIONS,
    decode_runaways,
    decode_slots,
    decode_task,
    decode_versions,
    decode_window,
)
from collector.watch.open_runaways import OpenRunaways
from collector.watch.task_runs import TaskRuns
from collector.watch.windows.targets import Targets


async def read_windows(
    log: Log, *, targets: Targets, runs: TaskRuns, runaways: OpenRunaways, poison: PoisonReport
) -> None:
    """Give each what the topic holds of it, the slots of names before what takes them.

    A record that cannot be read is counted and named; what it held begins again.
    """
    newest: dict[bytes, Record] = {}
    for partition in range(log.partitions(WINDOWS)):
        async for record in log.replay(WINDOWS, partition):
            if not record.key.startswith((RANKED, DROPS, FAULTS, NOTICES)):
                newest[record.key] = record
    for record in sorted(newest.values(), key=lambda each: each.key != SLOTS):
        if not record.value:
            continue
        try:
            _restore(record.key, record.value, targets, runs, runaways)
        except Undecodable as error:
            poison.unprocessable(record.position, error)


def _restore(
    key: bytes, value: bytes, targets: Targets, runs: TaskRuns, runaways: OpenRunaways
) -> None:
    if key == SLOTS:
        targets.restore_slots(decode_slots(value))
        return
    if key == RUNAWAYS:
        runaways.restore(decode_runaways(value))
        return
    if key.startswith(VERSIONS):
        targets.restore_versions(decode_versions(value))
        return
    if not key.startswith(TASK):
        targets.restore(decode_window(value))
        return
    agent, time = runs.restore(decode_task(value))
    if targets.agent_labels(*agent, time) != agent:
        runs.forget_agent(*agent)
