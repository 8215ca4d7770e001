"""Which offset of a partition is still needed: every open trace claims all from its first record on."""

from collections import deque


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


class Hold:
    """One trace's claim on everything from its first offset on."""

    __slots__ = ("done", "number", "offset")

    def __init__(self, offset: int, number: int) -> None:
        self.offset = offset
        self.number = number  # in the order in which traces were opened, also those of one record
        self.done = False


class LowWater:
    """The holds of a partition in the order of their offsets: records are read in order, so holds are made in order."""

    def __init__(self) -> None:
        self._holds: deque[Hold] = deque()
        self._made = 0
        self._live = 0

    def __len__(self) -> int:
        return self._live

    def hold(self, offset: int) -> Hold:
        """Claim everything from `offset` on, which is not below an earlier claim."""
        hold = Hold(offset, self._made)
        self._holds.append(hold)
        self._made += 1
        self._live += 1
        return hold

    def release(self, hold: Hold) -> None:
        """Give a claim back; doing it twice is the same as once."""
        if hold.done:
            return
        hold.done = True
        self._live -= 1
        # One old trace must not keep the claims of all after it.
        if len(self._holds) > 64 + 2 * self._live:
            self._holds = deque(hold for hold in self._holds if not hold.done)

    def commit_offset(self, next_offset: int) -> int:
        while self._holds and self._holds[0].done:
            self._holds.popleft()
        return self._holds[0].offset if self._holds else next_offset
