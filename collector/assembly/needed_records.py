"""Which records of a partition its traces still need: a record may hold spans of many. Pure."""

from __future__ import annotations


class NeededRecords:
    """Records by offset, and how many need each; one that a single trace needs takes no memory here."""

    def __init__(self) -> None:
        self._needs: dict[int, int] = {}
        """How many still need it, where these are several, or where it is being taken."""

    def begin(self, offset: int, traces: int) -> None:
        """The record is taken for so many traces: until `taken` it is needed for itself, too."""
        self._needs[offset] = traces + 1

    def taken(self, offset: int, takers: int, traces: int) -> bool:
        """So many of its traces took spans of it; returns whether any of them needs it still."""
        left = self._needs[offset] = self._needs[offset] - (traces + 1 - takers)
        if left < 2:
            del self._needs[offset]
        return left > 0

    def release(self, offset: int) -> bool:
        """A trace needs the record no longer; returns whether none does."""
        left = self._needs.pop(offset, 1) - 1
        if left:
            self._needs[offset] = left
        return not left
