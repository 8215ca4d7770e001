"""How far one partition has been judged: the commit never passes a record whose verdict is not in the log. Pure."""

from __future__ import annotations

from collections import OrderedDict

REMEMBERED = 16_384


class Progress:
    """Records under way and subjects that have their verdict."""

    def __init__(self, next_offset: int) -> None:
        self._next = next_offset
        self._under_way: dict[int, None] = {}
        self._judged: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._committed = next_offset

    def seen(self, offset: int) -> None:
        """The record was looked at, and nothing or nothing more is to be done about it."""
        self._next = max(self._next, offset + 1)

    def begin(self, offset: int) -> None:
        """A verdict about the record is under way."""
        self._under_way[offset] = None
        self.seen(offset)

    def end(self, offset: int) -> None:
        """It is written, or will never be."""
        self._under_way.pop(offset, None)

    def low_water(self, without: int | None = None) -> int:
        """Everything below is done with; `without` = as if that record were, too."""
        return min((each for each in self._under_way if each != without), default=self._next)

    def is_new(self, offset: int) -> bool:
        """Whether a commit at `offset` says more than the last one; then it counts as made."""
        if offset <= self._committed:
            return False
        self._committed = offset
        return True

    def judged(self, subject: str, digest: str) -> None:
        """There is a verdict, or one is under way."""
        self._judged[subject, digest] = None
        if len(self._judged) > REMEMBERED:
            self._judged.popitem(last=False)

    def is_judged(self, subject: str, digest: str) -> bool:
        """Whether the subject as it is had its verdict: it is not asked for twice."""
        return (subject, digest) in self._judged
