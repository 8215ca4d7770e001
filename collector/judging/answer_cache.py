"""Answers of models by content, on disk, bounded: a request that was paid for is not made again.

Key: the digest of prompt and model. An answer names the subject that paid for it until that subject's verdict is in
the log: after a crash in between, the subject finds its own payment, and its verdict names the real cost.

A vector is cached like an answer: one text, one entry, floats of 32 bits in base64.
"""

import base64
import hashlib
import logging
import sqlite3
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from collector.base import sqlite_file
from evaluators.judging.embedding import Embedded
from evaluators.judging.prompt import Answer

_log = logging.getLogger(__name__)

_T = TypeVar("_T")
_OVERHEAD = 256
"""Bytes that an answer takes besides itself: its key, its row, its place in the index."""
_HEADROOM = 16 << 20
"""Bytes that the file may take above twice its limit: pages that are free and not given back."""
_WAL = 1 << 20
_PAGES_KEPT = 1 << 20
"""Bytes of pages in memory. This and the write-ahead log (`_WAL`) are small: an answer is read once in seconds."""
NAME = "answers.sqlite"
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS answers (number INTEGER PRIMARY KEY, key BLOB, size INTEGER, entry BLOB)",
    "CREATE UNIQUE INDEX IF NOT EXISTS answers_by_key ON answers (key)",
)
_OLDEST = "number = (SELECT min(number) FROM answers)"


class CachedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    answer: Answer
    owner: str | None  # the subject that paid, until its verdict is written


_encode = msgspec.msgpack.Encoder().encode
_answer = msgspec.msgpack.Decoder(CachedAnswer)


class AnswerCache:
    """A cache of `limit` bytes that evicts the oldest answers first.

    With `limit` 0 only a subject's own answers are found, until its verdict is written. A cache that cannot be opened
    starts empty: every answer can be asked for again. While its disk fails, it has no answers and keeps none. `folder`:
    its own. `limit`: bytes of answers. `failed`: called with each failure of its disk.
    """

    def __init__(
        self, folder: Path, limit: int, failed: Callable[[Exception], None] = lambda _: None
    ) -> None:
        self._shares = limit > 0
        self._limit = max(limit, 1 << 20)
        self._path = folder / NAME
        self._failed = failed
        self._connection: sqlite3.Connection | None = None
        self._size = 0
        try:
            self._open()
        except (sqlite3.Error, OSError) as error:
            _log.warning(
                "The answer cache `%s` cannot be opened and starts empty: %s", folder, error
            )
            with suppress(OSError):
                sqlite_file.discard(self._path)

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None:
            return self._connection
        connection = sqlite_file.connect(self._path, cache=_PAGES_KEPT, create=True)
        try:
            pages = (2 * self._limit + _HEADROOM) // sqlite_file.PAGE
            sqlite_file.prepare(connection, pages=pages, wal=_WAL, shared=False)
            for statement in _SCHEMA:
                connection.execute(statement)
            self._size = connection.execute("SELECT ifnull(sum(size), 0) FROM answers").fetchone()[
                0
            ]
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _transact(self, work: Callable[[sqlite3.Connection], _T]) -> _T | None:
        """What `work` returns, in a transaction of its own; None when the disk fails, which is reported."""
        size = self._size
        try:
            with sqlite_file.transaction(self._open()) as connection:
                return work(connection)
        except (sqlite3.Error, OSError) as error:
            self._size = size
            self.close()  # the next transaction opens it again
            if isinstance(error, sqlite3.Error) and sqlite_file.is_damage(error):
                _log.warning("The answer cache `%s` is damaged and starts empty.", self._path)
                with suppress(OSError):
                    sqlite_file.discard(self._path)
            self._failed(sqlite_file.named(error, self._path))
            return None

    def get(self, digest: str, model: str, owner: str) -> CachedAnswer | None:
        """The answer, if this owner may use it; its `owner` is set if this owner paid and has no verdict yet."""
        key = _key(digest, model)
        entry = self._transact(lambda connection: _entry_at(connection, key))
        if entry is None or entry.owner == owner:
            return entry
        return msgspec.structs.replace(entry, owner=None) if self._shares else None

    def put(self, digest: str, model: str, entry: CachedAnswer) -> None:
        key = _key(digest, model)
        self._transact(lambda connection: self._put(connection, key, entry))

    def _put(self, connection: sqlite3.Connection, key: bytes, entry: CachedAnswer) -> None:
        value = _encode(entry)
        size = len(value) + _OVERHEAD
        self._drop(connection, "key = ?", key)
        if size > self._limit:
            return
        while self._size + size > self._limit and self._drop(connection, _OLDEST):
            pass
        connection.execute(
            "INSERT INTO answers (key, size, entry) VALUES (?, ?, ?)", (key, size, value)
        )
        self._size += size

    def written(self, digest: str, model: str) -> None:
        """The verdict of the answer's owner is in the log: from now on every subject may use the answer."""
        key = _key(digest, model)
        self._transact(lambda connection: _disown(connection, key))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _drop(self, connection: sqlite3.Connection, which: str, *given: object) -> bool:
        """Delete the answer that this condition names; whether there was one."""
        select = f"SELECT number, size FROM answers WHERE {which}"  # noqa: S608 - our own words
        row = connection.execute(select, given).fetchone()
        if row is None:
            return False
        connection.execute("DELETE FROM answers WHERE number = ?", (row[0],))
        self._size -= row[1]
        return True


def _entry_at(connection: sqlite3.Connection, key: bytes) -> CachedAnswer | None:
    """An answer; a damaged one is asked for again."""
    row = connection.execute("SELECT entry FROM answers WHERE key = ?", (key,)).fetchone()
    try:
        return None if row is None else _answer.decode(row[0])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _disown(connection: sqlite3.Connection, key: bytes) -> None:
    entry = _entry_at(connection, key)
    if entry is not None:
        value = _encode(msgspec.structs.replace(entry, owner=None))
        connection.execute("UPDATE answers SET entry = ? WHERE key = ?", (value, key))


def _key(digest: str, model: str) -> bytes:
    return hashlib.sha256(f"{digest}\0{model}".encode()).digest()


def text_digest(text: str) -> str:
    """The key of a text to be embedded; it is never a prompt's digest."""
    return "embedding/" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def vector_answers(answer: Embedded, model: str, owner: str) -> Iterator[CachedAnswer]:
    """One entry per text, each with its share of the cost: the shares add up to what was paid."""
    count = len(answer.vectors)
    share, rest = divmod(answer.input_tokens, count)
    for at, vector in enumerate(answer.vectors):
        one = Answer(
            text=base64.b64encode(array("f", vector).tobytes()).decode(),
            model=model,
            input_tokens=share + (at < rest),
            output_tokens=0,
            cost_usd=None if answer.cost_usd is None else answer.cost_usd / count,
        )
        yield CachedAnswer(answer=one, owner=owner)


def vector_of(entry: CachedAnswer) -> Sequence[float]:
    return array("f", base64.b64decode(entry.answer.text))
