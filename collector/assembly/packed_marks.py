"""Closed traces by id in the order in which they were put, in some 90 bytes each: a row of numbers and no objects.

buckets: hash of the id -> slot -> the next slot of the same bucket
order:   oldest slot <-> ... <-> newest slot
rows:    what a slot holds; free slots are linked as a bucket's are
"""

from __future__ import annotations

import struct
import sys
from array import array
from typing import NamedTuple

from collector.base.errors import Undecodable
from collector.log.port import TRACES, Position
from evaluators.model import Root

ID_LENGTH = 16
_ROW = struct.Struct("<16s5qdB")
_NONE = 0xFFFFFFFF
_ROOTS: tuple[Root, ...] = ("parentless", "local", "missing")
_CROWDED = 2
"""Traces for each bucket, above which there is one bucket more: no put moves more than a few."""


class ClosedTrace(NamedTuple):
    """A trace that has closed, as its mark says."""

    offset: int
    """Of the mark itself, in `closings`."""
    last_offset: int
    """Of the records in `spans` that the closing covers."""
    revision: int
    closed_at: float
    traces_partition: int
    traces_offset: int
    """Negative: the trace could not be read and has no record."""
    root: Root
    service: str

    @property
    def position(self) -> Position | None:
        """Of the trace's newest record; None if it has no record."""
        if self.traces_offset < 0:
            return None
        return Position(TRACES, self.traces_partition, self.traces_offset)


class PackedMarks:
    """Closed traces by id. What is put again becomes the newest."""

    def __init__(self) -> None:
        self._count = 0
        self._rows = bytearray()
        self._services: list[str] = []
        """By slot; equal names are one object."""
        self._following = array("I")
        """By slot: the next of its bucket, or the next free slot."""
        self._older = array("I")
        self._newer = array("I")
        self._oldest = self._newest = self._free = _NONE
        self._buckets = array("I", [_NONE])
        self._half = 1
        """The power of two up to the number of buckets: those from here on took their slots from those before."""

    def __len__(self) -> int:
        return self._count

    def get(self, trace_id: bytes) -> ClosedTrace | None:
        slot = self._find(trace_id)
        return None if slot == _NONE else self._at(slot)[1]

    def oldest(self) -> tuple[bytes, ClosedTrace] | None:
        """What was put longest ago; None if there is nothing."""
        return None if self._oldest == _NONE else self._at(self._oldest)

    def put(self, trace_id: bytes, trace: ClosedTrace) -> None:
        """Remember a trace, as the newest.

        Raises:
            Undecodable: no trace has such an id or such numbers.
        """
        if len(trace_id) != ID_LENGTH:
            raise Undecodable("the id is not that of a trace")
        try:
            row = _packed(trace_id, trace)
        except struct.error as error:
            raise Undecodable("a number of the mark is out of range") from error
        self.remove(trace_id)
        slot = self._taken_slot(row, sys.intern(trace.service))
        self._link(slot, trace_id)
        self._older[slot], self._newer[slot] = self._newest, _NONE
        if self._newest == _NONE:
            self._oldest = slot
        else:
            self._newer[self._newest] = slot
        self._newest = slot
        self._count += 1
        if self._count > _CROWDED * len(self._buckets):
            self._add_bucket()

    def remove(self, trace_id: bytes) -> None:
        """Forget a trace; an unknown one is not an error."""
        bucket = self._bucket(trace_id)
        before, slot = _NONE, self._buckets[bucket]
        while slot != _NONE and self._id(slot) != trace_id:
            before, slot = slot, self._following[slot]
        if slot == _NONE:
            return
        if before == _NONE:
            self._buckets[bucket] = self._following[slot]
        else:
            self._following[before] = self._following[slot]
        older, newer = self._older[slot], self._newer[slot]
        if older == _NONE:
            self._oldest = newer
        else:
            self._newer[older] = newer
        if newer == _NONE:
            self._newest = older
        else:
            self._older[newer] = older
        self._services[slot] = ""
        self._following[slot], self._free = self._free, slot
        self._count -= 1

    def _taken_slot(self, row: bytes, service: str) -> int:
        slot = self._free
        if slot == _NONE:
            self._rows += row
            self._services.append(service)
            for links in (self._following, self._older, self._newer):
                links.append(_NONE)
            return len(self._services) - 1
        self._free = self._following[slot]
        self._rows[slot * _ROW.size : (slot + 1) * _ROW.size] = row
        self._services[slot] = service
        return slot

    def _find(self, trace_id: bytes) -> int:
        slot = self._buckets[self._bucket(trace_id)]
        while slot != _NONE and self._id(slot) != trace_id:
            slot = self._following[slot]
        return slot

    def _bucket(self, trace_id: bytes) -> int:
        bucket = hash(trace_id) % (2 * self._half)
        return bucket if bucket < len(self._buckets) else bucket - self._half

    def _link(self, slot: int, trace_id: bytes) -> None:
        bucket = self._bucket(trace_id)
        self._following[slot], self._buckets[bucket] = self._buckets[bucket], slot

    def _add_bucket(self) -> None:
        """Linear hashing: the new bucket takes its part of one other."""
        split = len(self._buckets) - self._half
        slot, self._buckets[split] = self._buckets[split], _NONE
        self._buckets.append(_NONE)
        while slot != _NONE:
            following = self._following[slot]
            self._link(slot, self._id(slot))
            slot = following
        if len(self._buckets) == 2 * self._half:
            self._half *= 2

    def _id(self, slot: int) -> bytes:
        start = slot * _ROW.size
        return bytes(self._rows[start : start + ID_LENGTH])

    def _at(self, slot: int) -> tuple[bytes, ClosedTrace]:
        trace_id, offset, last, revision, partition, traces_offset, closed_at, root = (
            _ROW.unpack_from(self._rows, slot * _ROW.size)
        )
        return trace_id, ClosedTrace(
            offset=offset,
            last_offset=last,
            revision=revision,
            closed_at=closed_at,
            traces_partition=partition,
            traces_offset=traces_offset,
            root=_ROOTS[root],
            service=self._services[slot],
        )


def _packed(trace_id: bytes, trace: ClosedTrace) -> bytes:
    return _ROW.pack(
        trace_id,
        trace.offset,
        trace.last_offset,
        trace.revision,
        trace.traces_partition,
        trace.traces_offset,
        trace.closed_at,
        _ROOTS.index(trace.root),
    )
