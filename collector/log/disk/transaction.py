"""What one transaction of the disk log does. Nothing of it is true before LMDB has committed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import lmdb

from collector.log.commits import CommitKey, Committed
from collector.log.disk.disk_records import DiskShelf
from collector.log.disk.store import DiskStore, Heads
from collector.log.embedded.retention import Drops, Retention
from collector.log.embedded.staging import Place, Staged, check_commits, stage
from collector.log.port import COMPACTED, Commit, New, Position


class Admitted(NamedTuple):
    """Records that may be appended, and the bytes by which each topic grows with them."""

    staged: Sequence[Staged]
    need: dict[str, int]


class DiskTxn:
    """`heads` and `drops` are what holds once it is committed."""

    def __init__(
        self,
        store: DiskStore,
        txn: lmdb.Transaction[bytes],
        heads: Heads,
        *,
        retention: Retention,
        time: float,
    ) -> None:
        self.heads = heads.copy()
        self.drops = Drops()
        self.written: list[Staged] = []
        self._store = store
        self._txn = txn
        self._shelf = DiskShelf(store, txn)
        self._retention = retention
        self._time = time
        self._nexts: dict[Place, int] = {}
        self._commits: dict[CommitKey, Committed] = {}

    def admit(self, records: Sequence[New], commits: Sequence[Commit]) -> Admitted:
        """The first half of a call: whatever it raises, nothing was done.

        Raises:
            LogFull, RecordTooLarge, ValueError: see `staging.stage` and `Retention.admit`.
        """
        partitions = self._retention.partitions
        check_commits(commits, partitions)
        staged = stage(
            records, self.heads.nexts, partitions=partitions, shares=self._retention.shares
        )
        need = self._need(staged)
        topics = {commit.topic for commit in commits}
        self._retention.admit(self._shelf, self.heads.commits, need, committing=topics)
        return Admitted(staged, need)

    def append(self, admitted: Admitted, commits: Sequence[Commit]) -> Sequence[Position]:
        """The second half: whatever it raises spoils the transaction."""
        staged, need = admitted
        self._retention.make_room(self._shelf, self.heads.commits, need, self.drops)
        self._shelf.append(staged, self._time)
        self._advance(staged, commits)
        self.written += staged
        return [record.position for record in staged]

    def release(self, positions: Iterable[Position]) -> None:
        """Delete records before their commit; positions that never were are passed over."""
        for position in positions:
            if position.topic not in COMPACTED and position[:2] in self._store.records:
                self._shelf.delete(position)

    def trim(self, budget: int) -> bool:
        """Delete what nobody needs; True when there is more."""
        return self._retention.trim(self._shelf, self.heads.commits, self.drops, budget)

    def save(self) -> None:
        """Put offsets, time and commits beside the records."""
        self._store.save(self._txn, time=self._time, nexts=self._nexts, commits=self._commits)

    def sizes(self, topics: Iterable[str]) -> dict[str, int]:
        """Bytes held, by topic."""
        return {topic: self._shelf.used(topic) for topic in topics}

    def _need(self, staged: Sequence[Staged]) -> dict[str, int]:
        need: dict[str, int] = {}
        for record in staged:
            topic = record.position.topic
            need[topic] = need.get(topic, 0) + self._shelf.need(record)
        return need

    def _advance(self, staged: Sequence[Staged], commits: Sequence[Commit]) -> None:
        for record in staged:
            topic, partition, offset = record.position
            self._nexts[topic, partition] = offset + 1
        self.heads.nexts.update(self._nexts)
        for commit in commits:
            advanced = self.heads.commits.advance(commit)
            if advanced is not None:
                self._commits[advanced[0]] = advanced[1]
