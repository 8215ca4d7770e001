"""Which ids were met lately: a bounded memory. Pure."""

from __future__ import annotations

from collections import OrderedDict


class Seen:
    """The newest `limit` ids; the one not met for longest goes first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._ids: OrderedDict[str, None] = OrderedDict()

    def add(self, id_: str) -> bool:
        """Remember the id; True when it is new."""
        if id_ in self._ids:
            self._ids.move_to_end(id_)
            return False
        if len(self._ids) >= self._limit:
            self._ids.popitem(last=False)
        self._ids[id_] = None
        return True

    @property
    def ids(self) -> tuple[str, ...]:
        """What is remembered, in the order in which it would be forgotten."""
        return tuple(self._ids)

    def __len__(self) -> int:
        return len(self._ids)
