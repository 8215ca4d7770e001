"""Records of `traces` that keeping needs once more: those that wait for a decision, those that say what was decided."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress

from collector.base.errors import Undecodable
from collector.forward.keeping import Keeping
from collector.log.port import TRACES, Position, Record
from collector.records.keeping import KeepingRecord, KeepingState
from collector.records.sent_trace import SentTrace, decode_sent
from collector.records.traces import GetRecord

RECENT = 64 << 20
"""Bytes of records that wait for their decision and are held: on Kafka each is a request to read again."""


class RecentRecords:
    """The newest traces as they were read, within RECENT bytes of records."""

    def __init__(self) -> None:
        self._traces: OrderedDict[tuple[int, int], tuple[SentTrace, int]] = OrderedDict()
        self._size = 0

    def put(self, record: Record, read: SentTrace) -> None:
        _, partition, offset = record.position
        self._forget(self._traces.pop((partition, offset), None))
        self._traces[partition, offset] = read, len(record.value)
        self._size += len(record.value)
        while self._size > RECENT:
            self._forget(self._traces.popitem(last=False)[1])

    def get(self, partition: int, offset: int) -> SentTrace | None:
        found = self._traces.get((partition, offset))
        return None if found is None else found[0]

    def _forget(self, held: tuple[SentTrace, int] | None) -> None:
        self._size -= 0 if held is None else held[1]


async def read_back(
    get: GetRecord,
    partition: int,
    offset: int | None,
    empty: Callable[[KeepingState | None], Keeping],
) -> tuple[Keeping, list[int]]:
    """What the owner before has decided, and the records that say it; nothing where they have expired.

    `offset`: of its newest record; `empty`: makes one of a state.
    """
    newest = None if offset is None else await _record(get, partition, offset)
    if newest is None or offset is None:
        return empty(None), []
    records = [*[await _record(get, partition, each) for each in newest.since], newest]
    first = records[0]
    if first is None or first.state is None:
        return empty(None), []
    keeping = empty(first.state)
    for record in records[1:]:
        if record is not None:
            keeping.read_back(record)
    return keeping, [*newest.since, offset]


async def _record(get: GetRecord, partition: int, offset: int) -> KeepingRecord | None:
    record = await get(Position(TRACES, partition, offset))
    with suppress(Undecodable):
        read = None if record is None else decode_sent(record.value)
        return read if isinstance(read, KeepingRecord) else None
    return None
