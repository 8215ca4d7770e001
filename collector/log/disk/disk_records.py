"""The records as one write transaction of the disk log sees them (`retention.Shelf`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b

import lmdb

from collector.log.disk.frames import Piece, footprint, offset_of, piece_key, pieces, time_of
from collector.log.disk.store import DiskStore
from collector.log.embedded.staging import Place, Staged
from collector.log.port import COMPACTED, Position


class DiskShelf:
    """Lives as long as its transaction."""

    def __init__(self, store: DiskStore, txn: lmdb.Transaction[bytes]) -> None:
        self._store = store
        self._txn = txn
        self._cursors: dict[Place, lmdb.Cursor[bytes]] = {}
        self._places: dict[str, list[Place]] = {}
        for place in store.places:
            self._places.setdefault(place[0], []).append(place)

    def used(self, topic: str) -> int:
        """Bytes of the pages that hold the topic."""
        databases = [self._store.records[place] for place in self._places[topic]]
        if topic in COMPACTED:
            databases += [self._store.keys[place] for place in self._places[topic]]
        return sum(self._pages(db) for db in databases) * self._store.page

    def oldest(self, topic: str, partition: int) -> tuple[int, float] | None:
        """Offset and time of the partition's oldest record."""
        cursor = self._cursor((topic, partition))
        if not cursor.first():
            return None
        return offset_of(cursor.key()), time_of(cursor.value())

    def delete(self, position: Position) -> None:
        """Remove every piece of a record."""
        cursor = self._cursor(position[:2])
        wanted = piece_key(position.offset)
        if cursor.key() != wanted:
            cursor.set_key(wanted)
        while cursor.key()[:8] == wanted[:8]:
            cursor.delete()

    def need(self, staged: Staged) -> int:
        """Bytes by which the topic grows; 0 for a tombstone or a key that the topic holds already."""
        if staged.value is None:
            return 0
        place = staged.position[:2]
        if staged.position.topic in COMPACTED:
            held = self._txn.get(_digest(staged.key), db=self._store.keys[place])
            if held is not None:
                return 0
        return footprint(staged.size, page=self._store.page)

    def append(self, records: Sequence[Staged], time: float) -> None:
        """Add records, each above all that its place holds or ever held."""
        waiting: dict[Place, list[Piece]] = {}
        for staged in records:
            place = staged.position[:2]
            if staged.position.topic in COMPACTED:
                self._supersede(staged)
                self._cursor(place).putmulti(self._pieces(staged, time), append=True)
            else:
                waiting.setdefault(place, []).extend(self._pieces(staged, time))
        for place, items in waiting.items():
            self._cursor(place).putmulti(items, append=True)

    def _pieces(self, staged: Staged, time: float) -> Iterable[Piece]:
        if staged.value is None:
            return ()
        return pieces(
            staged.position.offset,
            time=time,
            key=staged.key,
            value=staged.value,
            headers=staged.headers,
            page=self._store.page,
        )

    def _supersede(self, staged: Staged) -> None:
        place, digest = staged.position[:2], _digest(staged.key)
        keys = self._store.keys[place]
        old = self._txn.get(digest, db=keys)
        if old is not None:
            self.delete(Position(*place, int.from_bytes(old, "big")))
        if staged.value is not None:
            self._txn.put(digest, staged.position.offset.to_bytes(8, "big"), db=keys)
        elif old is not None:
            self._txn.delete(digest, db=keys)

    def _cursor(self, place: Place) -> lmdb.Cursor[bytes]:
        if place not in self._cursors:
            self._cursors[place] = self._txn.cursor(self._store.records[place])
        return self._cursors[place]

    def _pages(self, db: lmdb._Database) -> int:
        stat = self._txn.stat(db)
        return stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]


def _digest(key: bytes) -> bytes:
    """LMDB takes keys of at most 511 bytes; session ids may be longer."""
    return blake2b(key, digest_size=16).digest()
