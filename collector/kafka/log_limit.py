"""A bound on what aiokafka logs: with the broker away it writes 10 to 30 lines a second per client."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

LIMIT = 256
"""Distinct messages that are remembered; beyond it the memory begins afresh."""


class RateLimited(logging.Handler):
    """Passes each distinct message on to the root logger at most once per `every` seconds, then with a count.

    A handler and not a filter: filters of a logger do not see what its children log.
    """

    def __init__(
        self, *, every: float = 60.0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._every = every
        self._monotonic = monotonic
        self._passed: dict[tuple[str, int, str], float] = {}
        self._held: dict[tuple[str, int, str], int] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Pass the record on, or hold it back and count it."""
        key = (record.name, record.levelno, str(record.msg))
        now = self._monotonic()
        last = self._passed.get(key)
        if last is not None and now - last < self._every:
            self._held[key] = self._held.get(key, 0) + 1
            return
        if len(self._passed) >= LIMIT:
            self._passed.clear()
            self._held.clear()
        self._passed[key] = now
        held = self._held.pop(key, 0)
        if held:
            record.msg, record.args = f"{record.getMessage()} (and {held} more like it)", ()
        logging.getLogger().handle(record)


def limit_aiokafka_log() -> None:
    """Put the bound on the `aiokafka` logger; doing it again changes nothing."""
    logger = logging.getLogger("aiokafka")
    if any(isinstance(handler, RateLimited) for handler in logger.handlers):
        return
    logger.addHandler(RateLimited())
    logger.propagate = False
