"""Records that were read and are not done: which may be scored next, and how far a partition may be committed. Pure.

    poll --add--> waiting, by session --next--> under way --done--> the low-water of its partition moves on

The records of a session follow one another. Those of other sessions pass them, so that a session whose traces take
long holds up no other; and one service has at most its share of what is under way.
"""

from __future__ import annotations

import heapq
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import TypeAlias

from msgspec.structs import replace

from collector.log.port import Record

MOST = 64
"""Records under way: their traces are decoded."""
MOST_BYTES = 64 << 20
"""Of records under way, as long as there is more than one."""
WAITING = 20_000
"""Records that are not done, after which no more are read."""
WAITING_BYTES = 32 << 20
"""Of records that are not done; of further ones the value is let go, and read again when it is their turn."""

_Session: TypeAlias = tuple[int, bytes]
"""Partition and key."""


class Waiting:
    """A record that is not done."""

    __slots__ = ("is_done", "is_under_way", "number", "record", "service", "size")

    def __init__(self, record: Record, number: int) -> None:
        self.record = record
        """Its value is empty while it is let go."""
        self.number = number
        """In the order of arrival."""
        self.service = record.key.partition(b"\0")[0]
        self.size = len(record.value)
        self.is_under_way = False
        self.is_done = False

    @property
    def session(self) -> _Session:
        """Whose turn it waits for."""
        return self.record.position.partition, self.record.key

    @property
    def is_let_go(self) -> bool:
        """Whether the value must be read again."""
        return len(self.record.value) != self.size


class Backlog:
    """The records of all partitions that are not done.

    Args:
        share: Of what is under way, what one service may have; at least one record.
    """

    def __init__(self, share: float) -> None:
        self._most = max(1, int(MOST * share))
        self._most_bytes = int(MOST_BYTES * share)
        self.clear()

    def clear(self) -> None:
        """Forget every record."""
        self._sessions: dict[_Session, deque[Waiting]] = {}
        """What is not done, the record under way first."""
        self._ready: dict[bytes, list[tuple[int, _Session]]] = {}
        """By service, in turn: a heap of the sessions with nothing under way, by the number of their next record."""
        self._under_way: Counter[bytes] = Counter()
        """Records by service."""
        self._bytes: Counter[bytes] = Counter()
        """The same in bytes."""
        self._partitions: dict[int, deque[Waiting]] = {}
        """The records of each, from the first that is not done."""
        self._all: dict[int, Waiting] = {}
        """By number, in order."""
        self._waiting: OrderedDict[int, Waiting] = OrderedDict()
        """Those that are not under way."""
        self._held = 0
        self._number = 0

    def __len__(self) -> int:
        return len(self._all)

    def add(self, record: Record) -> None:
        """A record that was read; those of a partition in the order of their offsets."""
        self._number += 1
        each = Waiting(record, self._number)
        if self._held + each.size > WAITING_BYTES:
            each.record = replace(record, value=b"")
        self._held += len(each.record.value)
        self._all[each.number] = self._waiting[each.number] = each
        self._partitions.setdefault(record.position.partition, deque()).append(each)
        queue = self._sessions.setdefault(each.session, deque())
        queue.append(each)
        if len(queue) == 1:
            self._offer(each)

    def next(self, has_room: Callable[[Record], bool], *, in_order: bool = False) -> Waiting | None:
        """The record to score next, from now on under way; None: none may be now.

        Services take turns, each with its oldest record; while that one has no room, the oldest of all goes, or none.
        `in_order`: only the oldest of all goes.
        """
        total = self._under_way.total()
        if total >= MOST or (total and self._bytes.total() >= MOST_BYTES):
            return None
        each = None if in_order else self._in_turn()
        if each is None or not has_room(each.record):
            each = self._oldest()
            if each is None or not self._may_have(each.service) or not has_room(each.record):
                return None
        # It is the oldest of its service either way.
        sessions = self._ready.pop(each.service)
        heapq.heappop(sessions)
        if sessions:
            self._ready[each.service] = sessions
        del self._waiting[each.number]
        each.is_under_way = True
        self._under_way[each.service] += 1
        self._bytes[each.service] += each.size
        return each

    def _oldest(self) -> Waiting | None:
        each = next(iter(self._waiting.values()), None)
        return each if each is not None and self._sessions[each.session][0] is each else None

    def _in_turn(self) -> Waiting | None:
        service = next(filter(self._may_have, self._ready), None)
        return None if service is None else self._sessions[self._ready[service][0][1]][0]

    def done(self, each: Waiting) -> int | None:
        """The record under way needs nothing more.

        Returns the offset below which every record of its partition is done, if it moved.
        """
        queue = self._sessions[each.session]
        queue.popleft()
        if queue:
            self._offer(queue[0])
        else:
            del self._sessions[each.session]
        records, low = self._partitions[each.record.position.partition], None
        self._remove(each, leaves=records[0] is each)
        while records and records[0].is_done:
            low = records.popleft().record.position.offset + 1
        return low

    def waits(self, partition: int, key: bytes, offset: int) -> bool:
        """Whether a record of the session before this offset is not done."""
        queue = self._sessions.get((partition, key))
        return queue is not None and queue[0].record.position.offset < offset

    def forget(self, partition: int) -> None:
        """The partition has another owner."""
        for session in [each for each in self._sessions if each[0] == partition]:
            for each in self._sessions.pop(session):
                self._remove(each, leaves=True)
        self._partitions.pop(partition, None)
        for service, sessions in list(self._ready.items()):
            kept = [each for each in sessions if each[1][0] != partition]
            heapq.heapify(kept)
            self._ready[service] = kept
            if not kept:
                del self._ready[service]

    def _offer(self, each: Waiting) -> None:
        heapq.heappush(self._ready.setdefault(each.service, []), (each.number, each.session))

    def _may_have(self, service: bytes) -> bool:
        under_way = self._under_way[service]
        return not under_way or (under_way < self._most and self._bytes[service] < self._most_bytes)

    def _remove(self, each: Waiting, *, leaves: bool) -> None:
        """`leaves`: nothing refers to it from here on; else it may stand behind others for long, without its value."""
        del self._all[each.number]
        self._waiting.pop(each.number, None)
        each.is_done = True
        self._held -= len(each.record.value)
        if not leaves:
            each.record = replace(each.record, value=b"")
        if each.is_under_way:
            self._under_way[each.service] -= 1
            self._bytes[each.service] -= each.size
            if not self._under_way[each.service]:
                del self._under_way[each.service], self._bytes[each.service]
