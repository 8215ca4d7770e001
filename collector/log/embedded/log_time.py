"""Log time: the machine's clock made to never go back, and the promise that readers at the end are given."""

from __future__ import annotations

import threading

from collector.clock import Clock


class LogTime:
    """Shared by the thread that appends and the loop that reads, hence the lock.

    What `end` returned is never undercut by a record that becomes visible later.
    """

    def __init__(self, clock: Clock, last: float = 0.0) -> None:
        self._clock = clock
        self._last = last
        self._in_flight: float | None = None
        self._lock = threading.Lock()

    def begin(self) -> float:
        """The time of every record of the transaction that begins now; `settle` must follow."""
        with self._lock:
            self._in_flight = self._now()
            return self._in_flight

    def settle(self) -> None:
        """The transaction is visible, or will never be."""
        with self._lock:
            self._in_flight = None

    def end(self) -> float:
        """No record older than this can become visible any more. Ask before looking for records."""
        with self._lock:
            return self._now() if self._in_flight is None else self._in_flight

    def _now(self) -> float:
        self._last = max(self._last, self._clock())
        return self._last
