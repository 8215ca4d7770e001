"""Reads the comparisons with the past back from topic `windows`."""

from __future__ import annotations

from collector.base.errors import Undecodable
from collector.log.consumer import PoisonReport
from collector.log.port import WINDOWS, Log, Record
from collector.records.drops import DROPS, DropState, decode_drop
from collector.signals.prometheus.drops import Drops


async def read_drops(log: Log, drops: Drops, poison: PoisonReport) -> None:
    """Give `drops` every label set that the topic holds.

    A record that cannot be read is counted and named; without its state a label set begins anew.
    """
    newest: dict[bytes, Record] = {}
    for partition in range(log.partitions(WINDOWS)):
        async for record in log.replay(WINDOWS, partition):
            if record.key.startswith(DROPS):
                newest[record.key] = record
    states: list[tuple[Record, DropState]] = []
    parts: dict[tuple[str, ...], dict[int, bytes]] = {}
    for record in newest.values():
        if not record.value:
            continue
        try:
            read = decode_drop(record.value)
        except Undecodable as error:
            poison.unprocessable(record.position, error)
            continue
        if isinstance(read, DropState):
            states.append((record, read))
        else:
            parts.setdefault(read.labels, {})[read.name] = read.packed
    for record, state in states:
        try:
            drops.restore(state, parts.get(state.labels, {}))
        except Undecodable as error:
            poison.unprocessable(record.position, error)
