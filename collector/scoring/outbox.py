"""What scoring has decided and not yet written: signals first, then state, then the commits (DESIGN 4, rule 4)."""

from __future__ import annotations

from collector.log.port import TRACES, Commit, New
from collector.scoring.effects import Effects

LARGE = 4096


class Outbox:
    """Filled by effects in order, emptied only by a write that succeeded."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._signals: list[New] = []
        self._state: list[New] = []
        self._commits: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._signals or self._state or self._commits)

    @property
    def is_large(self) -> bool:
        """Whether it should be written before more is decided."""
        return len(self._signals) + len(self._state) >= LARGE

    def add(self, effects: Effects) -> None:
        """Write these, too."""
        self._signals += effects.signals
        self._state += effects.state

    def add_state(self, records: tuple[New, ...]) -> None:
        """Write these, too."""
        self._state += records

    def done(self, partition: int, offset: int) -> None:
        """The record at `offset` and all before it in the partition need not be read again."""
        self._commits[partition] = offset + 1

    def forget(self, partition: int) -> None:
        """The partition is another's now: neither its commit nor its state is ours to move."""
        self._commits.pop(partition, None)
        self._state = [each for each in self._state if each.partition != partition]

    @property
    def records(self) -> list[New]:
        """In the order of the write."""
        return [*self._signals, *self._state]

    @property
    def commits(self) -> list[Commit]:
        """What the write commits."""
        return [
            Commit(group=self._group, topic=TRACES, partition=partition, offset=offset)
            for partition, offset in self._commits.items()
        ]

    def clear(self) -> None:
        """It is written."""
        self._signals.clear()
        self._state.clear()
        self._commits.clear()
