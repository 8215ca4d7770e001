"""Which of many names out of traces have a label value of their own: those with the most volume lately. Pure.

The volume of a name is the number of its events, each worth half as much for every hour of log time that it is old.
It is a function of the set of events: their order changes nothing. Names without a slot are counted in a table of
bounded size (Space-Saving; Metwally, Agrawal, El Abbadi, ICDT 2005).
"""

from collections.abc import Hashable, Iterator, Sequence
from math import exp2, log2
from typing import Generic, TypeVar

import msgspec

HALF_LIFE = 3600.0  # seconds of log time after which an event counts half
WAITING = 256  # names without a slot that are counted
FEW = 3  # events that a name must have before it takes the slot of another
CLEARLY = 1.0
"""How much larger a newcomer's volume must be, as a power of two: twice, so that slots do not go to and fro."""
_NOTHING = float("-inf")

K = TypeVar("K", bound=Hashable)


class NameVolume(msgspec.Struct, array_like=True):
    """The volume of one name. Its place in the order of fields is what is stored: append only."""

    volume: float = _NOTHING
    """Binary logarithm of the sum of 2 ** (log time in half-lives) over its events: it needs no ageing."""
    most: float = _NOTHING
    """The same with all events that it may have had before it came into the table."""
    events: int = 0

    def count(self, now: float) -> None:
        at = now / HALF_LIFE
        volume, most = self.volume, self.most
        new = at + log2(1 + exp2(volume - at)) if at > volume else _sum(volume, at)
        self.volume = new
        self.most = new if most == volume else _sum(most, at)
        self.events += 1


SlotsState = tuple[Sequence[tuple[K, NameVolume]], Sequence[tuple[K, NameVolume]]]
"""What a restart must not forget: names with a slot, then names without."""


class Slots(Generic[K]):
    """At most `limit` names have a slot."""

    def __init__(self, limit: int, *, few: int = FEW) -> None:
        """A name takes the slot of another after `few` events at the earliest."""
        self._limit = limit
        self._few = few
        self._held: dict[K, NameVolume] = {}
        self._waiting: dict[K, NameVolume] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[K]:
        return iter(self._held)

    def __contains__(self, name: K) -> bool:
        return name in self._held

    def tally(self, name: K) -> NameVolume:
        """Of a name with a slot: counting an event there is counting it here, while the name has it."""
        return self._held[name]

    def hold(self, name: K, since: float = _NOTHING) -> bool:
        """Whether the name has a slot; it gets one while one is free.

        Its volume then begins as that of one event at log time `since`, by default as nothing.
        """
        if name in self._held:
            return True
        if len(self._held) >= self._limit:
            return False
        at = since / HALF_LIFE
        self._held[name] = self._waiting.pop(name, None) or NameVolume(volume=at, most=at)
        return True

    def count(self, name: K, now: float) -> K | None:
        if self.hold(name):
            self._held[name].count(now)
            return None
        tally = self._table_entry(name)
        tally.count(now)
        least = min(self._held, key=lambda each: self._held[each].volume)
        if tally.events < self._few or tally.volume <= self._held[least].volume + CLEARLY:
            return None
        self._held[name] = self._waiting.pop(name)
        self._waiting[least] = self._held.pop(least)
        return least

    def state(self) -> SlotsState[K]:
        return tuple(self._held.items()), tuple(self._waiting.items())

    def restore(self, state: SlotsState[K]) -> None:
        held, waiting = state
        self._held = dict(held[: self._limit])
        self._waiting = dict(waiting[:WAITING])

    def _table_entry(self, name: K) -> NameVolume:
        """The newcomer's tally; in a full table it takes the place of the least, whose volume it may have had."""
        if name not in self._waiting:
            tally = NameVolume()
            if len(self._waiting) >= WAITING:
                least = min(self._waiting, key=lambda each: self._waiting[each].most)
                tally.most = self._waiting.pop(least).most
            self._waiting[name] = tally
        return self._waiting[name]


def _sum(one: float, other: float) -> float:
    """log2(2 ** one + 2 ** other), where the powers themselves would overflow."""
    high, low = (one, other) if one > other else (other, one)
    return high if low == _NOTHING else high + log2(1 + exp2(low - high))
