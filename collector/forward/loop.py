"""What was forwarded a moment ago and has come back: it is not forwarded a second time."""

from collections.abc import Sequence

from collector.base.clock import Clock

KEPT = 60.0  # seconds for which an item is remembered at least, while there is room
ROOM = 1 << 17  # items of one generation; there are two, of 8 MiB each at most


class Forwarded:
    """The keys of items (`collector/otlp/items.py`), in two generations: the older one is forgotten as a whole.

    What comes back is read behind all that waits in the log. So a generation ends when the records that are read were
    written a minute after it began, however late they are read. `clock`: that of the log: when items are sent.
    """

    def __init__(self, clock: Clock, *, room: int = ROOM) -> None:
        self._clock = clock
        self._room = room
        self._newer: set[int] = set()
        self._older: set[int] = set()
        self._began = self._noted = clock()

    def again(self, keys: Sequence[int | None], written: float) -> set[int]:
        """The places of those that were here before; from now on all of them were.

        `written`: the log time of their record.
        """
        if written - self._noted >= KEPT:  # also the newest were sent more than a minute before
            self._newer = set()
            self._turn()
        elif written - self._began >= KEPT:
            self._turn()
        self._noted = self._clock()
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
