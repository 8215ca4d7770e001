"""How far one partition has been judged. A commit never passes a record whose verdict is not in the log. Pure."""

from __future__ import annotations

from collections import OrderedDict

MAX_JUDGED = 16_384
"""Subjects remembered as judged."""


class Progress:
    """Records under way and subjects that have their verdict."""

    def __init__(self, next_offset: int) -> None:
        self._next = next_offset
        self._under_way: dict[int, None] = {}
        self._judged: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._committed = next_offset

    def taken(self, offset: int) -> None:
        """The record was taken: it needs nothing more, unless its verdict is under way."""
        self._next = max(self._next, offset + 1)

    def begin(self, offset: int) -> None:
        self._under_way[offset] = None
        self.taken(offset)

    def end(self, offset: int) -> None:
        """The verdict is written, or there will be none."""
        self._under_way.pop(offset, None)

    def low_water(self, without: int | None = None) -> int:
        """The offset below which every record is done with; `without`: as if that record were done with, too."""
        return min((each for each in self._under_way if each != without), default=self._next)

    def is_new(self, offset: int) -> bool:
        """Whether `offset` is above the last commit; if so, it counts as committed from now on."""
        if offset <= self._committed:
            return False
        self._committed = offset
        return True

    def judged(self, subject: str, digest: str) -> None:
        """The subject has a verdict, or one is under way."""
        self._judged[subject, digest] = None
        if len(self._judged) > MAX_JUDGED:
            self._judged.popitem(last=False)

    def is_judged(self, subject: str, digest: str) -> bool:
        return (subject, digest) in self._judged
