"""Answers of models by content, on disk, bounded: a request that was paid for is not made again.

Key: the digest of prompt and model. An answer names the subject that paid for it until that subject's verdict is in
the log: after a crash in between, the subject finds its own payment, and its verdict names the real cost.

A vector is cached like an answer: one text, one entry, floats of 32 bits in base64.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import shutil
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import lmdb
import msgspec

from collector.runtime.lmdb_check import discard_damaged
from evaluators.judging.embedding import Embedded

_log = logging.getLogger(__name__)

_T = TypeVar("_T")
_OVERHEAD = 256
_HEADROOM = 16 << 20
_META = b"meta"


class CachedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer."""

    text: str
    model: str
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    owner: str | None
    """The subject that paid, until its verdict is written."""


class _Slot(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    size: int
    entry: CachedAnswer


class _Tally(msgspec.Struct, kw_only=True):
    oldest: int = 0
    next: int = 0
    size: int = 0


_encode = msgspec.msgpack.Encoder().encode
_slot = msgspec.msgpack.Decoder(_Slot).decode
_tally = msgspec.msgpack.Decoder(_Tally).decode


class AnswerCache:
    """A cache of `limit` bytes that evicts the oldest answers first.

    With `limit` 0 only a subject's own answers are found, until its verdict is written. A cache that cannot be opened
    starts empty: every answer can be asked for again. While its disk fails, it has no answers and keeps none.

    Args:
        folder: Its own.
        limit: Bytes of answers.
        failed: Told each failure of its disk.
    """

    def __init__(
        self, folder: Path, limit: int, failed: Callable[[Exception], None] = lambda _: None
    ) -> None:
        self._shares = limit > 0
        self._limit = max(limit, 1 << 20)
        self._folder = folder
        self._failed = failed
        self._env: lmdb.Environment | None = None
        try:
            discard_damaged(folder, "answer cache")
            self._open()
        except (lmdb.Error, OSError, msgspec.DecodeError) as error:
            _log.warning(
                "The answer cache `%s` cannot be opened and starts empty: %s", folder, error
            )
            shutil.rmtree(folder, ignore_errors=True)

    def _open(self) -> lmdb.Environment:
        if self._env is not None:
            return self._env
        self._folder.mkdir(parents=True, exist_ok=True)
        env = lmdb.open(
            str(self._folder), map_size=2 * self._limit + _HEADROOM, max_dbs=3, mode=0o600
        )
        try:
            self._answers = env.open_db(b"answers")
            self._order = env.open_db(b"order")
            self._counts = env.open_db(b"counts")
            with env.begin() as txn:
                self._read_tally(txn)  # the only value that every later write needs
        except (lmdb.Error, msgspec.DecodeError):
            env.close()
            raise
        self._env = env
        return env

    def _transact(self, work: Callable[[lmdb.Transaction], _T], *, write: bool) -> _T | None:
        """What `work` returns, given a transaction; None when the map is full or the disk fails, which is told."""
        try:
            with self._open().begin(write=write) as txn:
                return work(txn)
        except lmdb.MapFullError:
            return None
        except (lmdb.Error, OSError, msgspec.DecodeError) as error:
            if getattr(error, "code", 0) <= 0:
                self.close()  # without the disk's errno it may be unusable: the next transaction opens it again
            self._failed(error)
            return None

    def get(self, digest: str, model: str, owner: str) -> CachedAnswer | None:
        """The answer, if this owner may use it; its `owner` is set if this owner paid and has no verdict yet."""
        key = _key(digest, model)
        value = self._transact(lambda txn: txn.get(key, db=self._answers), write=False)
        slot = _slot_of(value)
        if slot is None:
            return None
        entry = slot.entry
        if entry.owner == owner:
            return entry
        return msgspec.structs.replace(entry, owner=None) if self._shares else None

    def put(self, digest: str, model: str, entry: CachedAnswer) -> None:
        """Store an answer, unless it is above the limit."""
        key = _key(digest, model)
        self._transact(lambda txn: self._put(txn, key, entry), write=True)

    def _put(self, txn: lmdb.Transaction, key: bytes, entry: CachedAnswer) -> None:
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
        """The verdict of the answer's owner is in the log: from now on every subject may use the answer."""
        key = _key(digest, model)
        self._transact(lambda txn: self._disown(txn, key), write=True)

    def _disown(self, txn: lmdb.Transaction, key: bytes) -> None:
        slot = _slot_of(txn.get(key, db=self._answers))
        if slot is None:
            return
        unowned = msgspec.structs.replace(slot.entry, owner=None)
        txn.put(key, _encode(msgspec.structs.replace(slot, entry=unowned)), db=self._answers)

    def close(self) -> None:
        """Close the file."""
        if self._env is not None:
            self._env.close()
            self._env = None

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
        slot = _slot_of(value)
        txn.delete(key, db=self._answers)
        if slot is None:
            return
        txn.delete(_number(slot.number), db=self._order)
        tally.size -= slot.size


def _slot_of(value: bytes | memoryview | None) -> _Slot | None:
    """An answer; a damaged one is asked for again."""
    try:
        return None if value is None else _slot(bytes(value))
    except msgspec.DecodeError:
        return None


def _key(digest: str, model: str) -> bytes:
    return hashlib.sha256(f"{digest}\0{model}".encode()).digest()


def _number(number: int) -> bytes:
    return number.to_bytes(8, "big")


def text_digest(text: str) -> str:
    """The key of a text to be embedded; it is never a prompt's digest."""
    return "embedding/" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def vector_answers(answer: Embedded, model: str, owner: str) -> Iterator[CachedAnswer]:
    """One entry per text, each with its share of the cost: the shares add up to what was paid."""
    count = len(answer.vectors)
    share, rest = divmod(answer.input_tokens, count)
    for at, vector in enumerate(answer.vectors):
        yield CachedAnswer(
            text=base64.b64encode(array("f", vector).tobytes()).decode(),
            model=model,
            input_tokens=share + (at < rest),
            output_tokens=0,
            cost_usd=None if answer.cost_usd is None else answer.cost_usd / count,
            owner=owner,
        )


def vector_of(entry: CachedAnswer) -> Sequence[float]:
    """The vector of an entry."""
    return array("f", base64.b64decode(entry.text))
