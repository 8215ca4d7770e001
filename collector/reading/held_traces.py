"""The traces that a worker has read and holds until it is asked to score them. Pure; the same on both sides.

A worker holds the traces themselves, the main process only their names, to know what it need not send. Both put and
take alike, so they rarely disagree; where they do, the worker answers that the trace is missing and is sent it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, NamedTuple, TypeVar

MOST = 256
"""Traces that a worker holds."""
MOST_BYTES = 4 << 20
"""Of them, packed; a larger one is held by itself."""
T = TypeVar("T")


class TraceName(NamedTuple):
    """What tells the packed bytes of a trace from all others."""

    trace_id: str
    digest: str
    check: int
    """CRC-32 of the packed trace: the same spans are read otherwise when they close for another reason."""


class HeldTraces(Generic[T]):
    """The newest traces that were put and not taken; the oldest go first."""

    def __init__(self) -> None:
        self._held: OrderedDict[TraceName, tuple[T, int]] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, name: TraceName) -> bool:
        return name in self._held

    def put(self, name: TraceName, trace: T, size: int) -> None:
        """Hold a trace whose msgpack takes `size` bytes."""
        self.take(name)
        self._held[name] = trace, size
        self._bytes += size
        while len(self._held) > MOST or (self._bytes > MOST_BYTES and len(self._held) > 1):
            _, (_, oldest) = self._held.popitem(last=False)
            self._bytes -= oldest

    def take(self, name: TraceName) -> T | None:
        """The trace, which is held no longer; None: it is not held."""
        held = self._held.pop(name, None)
        if held is None:
            return None
        trace, size = held
        self._bytes -= size
        return trace
