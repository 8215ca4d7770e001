"""What was forwarded lately: whoever meets it again is in a loop, such as a Collector that sends back to us."""

from __future__ import annotations

from collections.abc import Sequence

from collector.base.clock import Clock

KEPT = 60.0
"""Seconds that an item is remembered at least, while there is room."""
ROOM = 1 << 17
"""Items of one generation; there are two, of 8 MiB each at most."""


class Forwarded:
    """The keys of items (`collector/otlp/items.py`), in two generations: the older one is forgotten as a whole."""

    def __init__(self, clock: Clock, *, room: int = ROOM) -> None:
        self._clock = clock
        self._room = room
        self._newer: set[int] = set()
        self._older: set[int] = set()
        self._began = clock()

    def again(self, keys: Sequence[int | None]) -> set[int]:
        """The places of those that were here before; from now on all of them were."""
        age = self._clock() - self._began
        if not 0 <= age < KEPT:
            self._turn()
        if age >= 2 * KEPT:  # the newer ones too are from before the last minute
            self._turn()
        met = {at for at, key in enumerate(keys) if key in self._newer or key in self._older}
        for key in keys:
            if key is not None:
                if len(self._newer) >= self._room:
                    self._turn()
                self._newer.add(key)
        return met

    def _turn(self) -> None:
        self._older, self._newer = self._newer, set()
        self._began = self._clock()
