"""The buffer of open traces, in all partitions of one process: whose trace closes when `windows.memory` is used up.

While others wait, a service may take its share of the buffer (`fairness.share`): the oldest trace of whoever is above
it closes first, of several that of the largest. Where none is above it, the oldest of all does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from collector.assembly.open_trace import Closing
from collector.assembly.open_traces import OpenTraces
from collector.assembly.service_queues import Shares


class Buffer:
    """The open traces of all partitions that the process owns, bounded in bytes together."""

    def __init__(self, owned: Mapping[int, OpenTraces], *, limit: int, share: float) -> None:
        """`limit` in bytes; `share`, 0 to 1, is what of it one service may take while others wait."""
        self._owned = owned
        self._limit = limit
        self.shares = Shares(limit * share)

    def relieve(self) -> Iterator[tuple[OpenTraces, Closing]]:
        """Close traces until the others fit."""
        while self.shares.size > self._limit:
            service = self.shares.greediest
            _, partition, trace = min(
                (oldest.first_time, partition, oldest)
                for partition, each in self._owned.items()
                if (oldest := each.oldest(service)) is not None
            )
            yield self._owned[partition], self._owned[partition].close(trace, "memory")
