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


class ReadBack:
    """What the owner of a partition before has decided. `empty`: makes one that has decided nothing."""

    def __init__(
        self, get: GetRecord, partition: int, empty: Callable[[KeepingState | None], Keeping]
    ) -> None:
        self._get = get
        self._partition = partition
        self._empty = empty

    async def state(self, offset: int | None) -> tuple[KeepingState | None, list[int]]:
        """The state as of the record at `offset`, and the records it is made of; None: they have expired."""
        newest = None if offset is None else await self._record(offset)
        if newest is None or offset is None:
            return None, []
        records = [*[await self._record(each) for each in newest.since], newest]
        first = records[0]
        if first is None or first.state is None:
            return None, []
        keeping = self._empty(first.state)
        for record in records[1:]:
            if record is not None:
                _apply(record, keeping)
        return first.state, [*newest.since, offset]

    async def _record(self, offset: int) -> KeepingRecord | None:
        record = await self._get(Position(TRACES, self._partition, offset))
        with suppress(Undecodable):
            read = None if record is None else decode_sent(record.value)
            return read if isinstance(read, KeepingRecord) else None
        return None


def _apply(record: KeepingRecord, keeping: Keeping) -> None:
    for decision in record.decisions:
        keeping.apply(decision)
    keeping.state.said |= record.said
    keeping.state.alarms = [*record.alarms]
    for session, since in record.failing.items():
        if since is None:
            keeping.state.failing.pop(session, None)
        else:
            keeping.state.failing[session] = since
