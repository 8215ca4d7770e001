"""Answers by content, on disk, bounded: a question that was paid for is not asked again.

Key: the digest of prompt and model. An answer remembers whose question it was until that subject's verdict is in the
log: when a crash comes between, the subject finds its own payment, and its verdict names the cost it has really had.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import shutil
from pathlib import Path

import lmdb
import msgspec

log = logging.getLogger(__name__)

_OVERHEAD = 256
_HEADROOM = 16 << 20
_META = b"meta"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One answer."""

    text: str
    model: str
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    owner: str | None
    """The subject that paid, as long as its verdict is not written."""


class _Slot(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    size: int
    entry: Entry


class _Tally(msgspec.Struct, kw_only=True):
    oldest: int = 0
    next: int = 0
    size: int = 0


_encode = msgspec.msgpack.Encoder().encode
_slot = msgspec.msgpack.Decoder(_Slot).decode
_tally = msgspec.msgpack.Decoder(_Tally).decode


class AnswerCache:
    """The oldest answers go first. `limit` 0: only a subject's own unwritten answers are kept, for a crash.

    One that cannot be opened is begun anew: it holds nothing that cannot be asked again.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self._shares = limit > 0
        self._limit = max(limit, 1 << 20)
        try:
            self._open(folder)
        except lmdb.Error as error:
            log.warning("the answer cache `%s` is begun anew: %s", folder, error)
            shutil.rmtree(folder, ignore_errors=True)
            self._open(folder)

    def _open(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._env = lmdb.open(str(folder), map_size=2 * self._limit + _HEADROOM, max_dbs=3)
        self._answers = self._env.open_db(b"answers")
        self._order = self._env.open_db(b"order")
        self._counts = self._env.open_db(b"counts")

    def get(self, digest: str, model: str, owner: str) -> Entry | None:
        """The answer, if this owner may have it; `owner` is still set when it was its own and is unwritten."""
        with self._env.begin() as txn:
            value = txn.get(_key(digest, model), db=self._answers)
        if value is None:
            return None
        entry = _slot(bytes(value)).entry
        if entry.owner == owner:
            return entry
        return msgspec.structs.replace(entry, owner=None) if self._shares else None

    def put(self, digest: str, model: str, entry: Entry) -> None:
        """Keep an answer. One that does not fit is not kept."""
        key = _key(digest, model)
        with contextlib.suppress(lmdb.MapFullError), self._env.begin(write=True) as txn:
            tally = self._read_tally(txn)
            self._drop(txn, key, tally)
            size = len(_encode(entry)) + _OVERHEAD
            slot = _encode(_Slot(number=tally.next, size=size, entry=entry))
            if size > self._limit:
                return
            while tally.size + size > self._limit and tally.oldest < tally.next:
                self._drop_oldest(txn, tally)
            txn.put(key, slot, db=self._answers)
            txn.put(_number(tally.next), key, db=self._order)
            tally.next += 1
            tally.size += size
            txn.put(_META, _encode(tally), db=self._counts)

    def written(self, digest: str, model: str) -> None:
        """The verdict of its owner is in the log: from now on it is anybody's."""
        key = _key(digest, model)
        with contextlib.suppress(lmdb.MapFullError), self._env.begin(write=True) as txn:
            value = txn.get(key, db=self._answers)
            if value is None:
                return
            slot = _slot(bytes(value))
            free = msgspec.structs.replace(slot.entry, owner=None)
            txn.put(key, _encode(msgspec.structs.replace(slot, entry=free)), db=self._answers)

    def close(self) -> None:
        """Let go of the file."""
        self._env.close()

    def _read_tally(self, txn: lmdb.Transaction) -> _Tally:
        value = txn.get(_META, db=self._counts)
        return _Tally() if value is None else _tally(bytes(value))

    def _drop_oldest(self, txn: lmdb.Transaction, tally: _Tally) -> None:
        key = txn.get(_number(tally.oldest), db=self._order)
        if key is not None:
            self._drop(txn, bytes(key), tally)
        tally.oldest += 1

    def _drop(self, txn: lmdb.Transaction, key: bytes, tally: _Tally) -> None:
        value = txn.get(key, db=self._answers)
        if value is None:
            return
        slot = _slot(bytes(value))
        txn.delete(key, db=self._answers)
        txn.delete(_number(slot.number), db=self._order)
        tally.size -= slot.size


def _key(digest: str, model: str) -> bytes:
    return hashlib.sha256(f"{digest}\0{model}".encode()).digest()


def _number(number: int) -> bytes:
    return number.to_bytes(8, "big")
