"""Damaged records: each is named and counted once, however many groups read it."""

from __future__ import annotations

import logging

from collector.base.families import RuntimeFamilies
from collector.base.telemetry import Telemetry
from collector.log.port import Position

_MOST = 10_000
"""Damaged records that are remembered as named; then they may be named and counted once more."""
_log = logging.getLogger(__name__)


class DamagedRecords:
    """The damaged records that were met, up to 10,000; then they may be named again."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._counter = RuntimeFamilies(telemetry).poison_records
        self._named: set[Position] = set()

    def pass_over(self, position: Position, reason: object) -> None:
        """Count and name the record at `position`, unless it was before."""
        if position in self._named:
            return
        if len(self._named) >= _MOST:
            self._named.clear()
        self._named.add(position)
        self._counter.labels(position.topic).inc()
        _log.error(
            "A record of `%s`, partition %d, offset %d, is passed over: %s", *position, reason
        )
