"""The spans that no one waits for though the commit has not passed them: one long trace must not hold those of all.

They stay in the log until their room is needed: trace records name them. Kept in memory: a crash forgets it, and what
was released then goes once the commit has passed it.
"""

MOST = 4 << 20
"""Offsets above the commit, one byte each, that are remembered in a partition; above them the commit alone counts."""
_CUT = 64 << 10  # passed offsets that are cut off together: to cut moves all that follow
_RELEASED = 1  # the byte of an offset that no trace needs


class ReleasedSpans:
    """By partition, the released offsets from the commit on. Owned by whoever writes the log."""

    def __init__(self) -> None:
        self._partitions: dict[int, _Offsets] = {}

    def add(self, partition: int, offset: int) -> None:
        self._partitions.setdefault(partition, _Offsets(offset)).add(offset)

    def first(self, partition: int, low: int) -> int | None:
        """The first released offset from `low`, the commit, on; those below are forgotten."""
        offsets = self._partitions.get(partition)
        return None if offsets is None else offsets.first(low)

    def remove(self, partition: int, offset: int) -> None:
        self._partitions[partition].remove(offset)


class _Offsets:
    __slots__ = ("base", "flags")

    def __init__(self, base: int) -> None:
        self.base = base
        self.flags = bytearray()

    def add(self, offset: int) -> None:
        place = offset - self.base
        if place < 0:  # traces close in any order
            if len(self.flags) - place > MOST:
                return
            self.flags[:0] = bytes(-place)
            self.base, place = offset, 0
        if place >= MOST:
            return
        if place >= len(self.flags):
            self.flags += bytes(place + 1 - len(self.flags))
        self.flags[place] = _RELEASED

    def first(self, low: int) -> int | None:
        passed = min(max(low - self.base, 0), len(self.flags))
        if passed > _CUT or passed == len(self.flags):
            del self.flags[:passed]
            self.base += passed
            passed = 0
        place = self.flags.find(_RELEASED, passed)
        return None if place < 0 else self.base + place

    def remove(self, offset: int) -> None:
        place = offset - self.base
        if 0 <= place < len(self.flags):
            self.flags[place] = 0
