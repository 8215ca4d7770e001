"""Admission by bytes in flight: what may be held in memory at once, over all requests of both transports."""

from __future__ import annotations

from prometheus_client import Gauge

from collector.receiver.answers import NoRoom


class Admission:
    """A budget of bytes. Owned by one event loop."""

    def __init__(self, *, limit: int, gauge: Gauge) -> None:
        self._limit = limit
        self._gauge = gauge
        self._held = 0

    @property
    def held(self) -> int:
        """Bytes taken and not given back."""
        return self._held

    def ticket(self) -> Ticket:
        """For one request; gives everything back when it ends."""
        return Ticket(self)

    def take(self, size: int) -> None:
        """Take bytes out of the budget.

        Raises:
            NoRoom: they do not fit now; nothing was taken.
        """
        if self._held + size > self._limit:
            raise NoRoom("too many bytes are being received at once")
        self._hold(self._held + size)

    def give_back(self, size: int) -> None:
        """Put bytes back."""
        self._hold(self._held - size)

    def _hold(self, size: int) -> None:
        self._held = size
        self._gauge.set(size)


class Ticket:
    """What one request holds of the budget."""

    __slots__ = ("_admission", "_held")

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._held = 0

    def grow(self, size: int) -> None:
        """Hold `size` bytes in all; never shrinks.

        Raises:
            NoRoom: they do not fit now.
        """
        if size > self._held:
            self._admission.take(size - self._held)
            self._held = size

    def __enter__(self) -> Ticket:
        return self

    def __exit__(self, *error: object) -> None:
        self._admission.give_back(self._held)
        self._held = 0
