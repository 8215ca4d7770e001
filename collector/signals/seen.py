"""Which ids were met lately: a bounded memory. Pure."""

from __future__ import annotations


class Seen:
    """The newest `limit` ids; the one not met for longest goes first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._ids: dict[str, None] = {}

    def add(self, id_: str) -> bool:
        """Remember the id; True when it is new."""
        is_new = id_ not in self._ids
        if not is_new:
            del self._ids[id_]
        elif len(self._ids) >= self._limit:
            del self._ids[next(iter(self._ids))]
        self._ids[id_] = None
        return is_new

    @property
    def ids(self) -> tuple[str, ...]:
        """What is remembered, in the order in which it would be forgotten."""
        return tuple(self._ids)

    def __len__(self) -> int:
        return len(self._ids)
