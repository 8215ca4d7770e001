"""The index behind the page and `/api/v1`: agents, sessions, traces and signals, within `serve.index` bytes.

It fills again by itself, so it never stops the service: a record that does not fit is counted and passed over, the
oldest sessions are evicted first and counted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import lmdb
import msgspec

from collector.api.answers import Refused
from collector.api.change import Change
from collector.api.families import ApiFamilies
from collector.api.store import NAMES, Reading, Store, excerpt
from collector.errors import ConfigError, Retryable, Undecodable
from collector.log.port import Position, Record
from collector.records.signal import decode_signal, decode_signal_header, encode_signal, redacted
from collector.records.trace_views import ListedTrace, decode_listed_trace
from collector.records.traces import SessionRecord
from collector.runtime.lmdb_check import discard_damaged

_log = logging.getLogger(__name__)
_DAMAGE = (msgspec.DecodeError, UnicodeDecodeError)
"""What a value of the index raises that was overwritten on disk; records raise Undecodable."""
VERSION = b"1"
SMALLEST = 4 << 20
HIGH, LOW = 0.75, 0.70
"""Shares of the map: LMDB needs free pages to write at all."""
_AT_ONCE = 8
_CHUNK = 16
"""One transaction takes at most this part of the map."""


@dataclass(slots=True)
class Taken:
    """The outcome of a batch."""

    signals: list[bytes] = field(default_factory=list[bytes])
    """The JSON of the signals that are new."""
    undecodable: list[tuple[Position, Undecodable]] = field(
        default_factory=list[tuple[Position, Undecodable]]
    )
    """Records that cannot be decoded, with the reason."""


_Take: TypeAlias = Callable[[Change, Record, Taken], None]
"""Applies one record to the index, and notes its outcome."""


class Index:
    """Owned by one writer at a time; reads may come from any thread.

    Raises:
        ConfigError: The folder cannot be used.
    """

    def __init__(
        self, folder: Path, *, size: int, max_traces: int, content: bool, families: ApiFamilies
    ) -> None:
        self._max_traces = max_traces
        self._content = content
        self._families = families
        self._size = max(size, SMALLEST)
        self._folder = folder
        self._is_damaged = False
        self._env = _open(folder, self._size)
        self.store = Store(self._env)
        self._forget_other_versions()
        families.index_limit_bytes.set(self._size)

    def take_traces(self, records: Sequence[Record]) -> Taken:
        """Keep the records of topic `traces`."""
        return self._take(records, self._take_trace)

    def take_signals(self, records: Sequence[Record]) -> Taken:
        """Keep the records of topic `signals`."""
        return self._take(records, self._take_signal)

    @contextmanager
    def reading(self) -> Generator[Reading]:
        """One consistent view; close it within the same call.

        Raises:
            Refused: it met a damaged value; the index starts empty with the next record.
        """
        with self._env.begin(buffers=False) as txn:
            try:
                yield Reading(self.store, txn)
            except _DAMAGE as error:
                self._is_damaged = True
                raise Refused(503, "the index was damaged on disk and starts empty") from error

    def reopen(self) -> None:
        """Close the folder and open it again. No read may be under way; until it succeeds, reads raise lmdb.Error.

        Raises:
            Retryable: it cannot be opened now.
        """
        self._env.close()
        try:
            self._env = _open(self._folder, self._size)
            self.store = Store(self._env)
        except (ConfigError, lmdb.Error) as error:
            raise Retryable(f"the index cannot be opened: {error}") from error.__cause__ or error

    def close(self) -> None:
        """Close the folder."""
        self._env.close()

    # --- within ---

    def _take(self, records: Sequence[Record], take: _Take) -> Taken:
        taken = Taken()
        for chunk in _chunks(records, self._size // _CHUNK):
            try:
                self._heal()
                self._write(chunk, take, taken)
                self._make_room()
            except _DAMAGE:
                self._is_damaged = True
                self._heal()
                self._write(chunk, take, taken)
        return taken

    def _heal(self) -> None:
        """Start again empty once a damaged value was met: others may be too, and it fills again by itself."""
        if self._is_damaged:
            self._is_damaged = False
            _log.warning("The index in %s was damaged on disk and starts empty.", self._folder)
            self._forget_everything("damaged")

    def _write(self, records: Sequence[Record], take: _Take, taken: Taken) -> None:
        """All of them in one transaction; where that does not fit, in halves."""
        attempt = Taken()
        try:
            with self._env.begin(write=True) as txn:
                change = Change(self.store, txn)
                for record in records:
                    try:
                        take(change, record, attempt)
                    except Undecodable as error:
                        attempt.undecodable.append((record.position, error))
                gone = change.trim(self._max_traces)
                change.finish()
        except lmdb.MapFullError:
            self._halve(records, take, taken)
            return
        taken.signals += attempt.signals
        taken.undecodable += attempt.undecodable
        self._count_gone(0, *gone, reason="session_full")

    def _halve(self, records: Sequence[Record], take: _Take, taken: Taken) -> None:
        if not self._evict() and len(records) == 1:
            self._families.refused.labels(records[0].position.topic).inc()
            return
        middle = max(1, len(records) // 2)
        for half in (records[:middle], records[middle:]):
            if half:
                self._write(half, take, taken)

    def _take_trace(self, change: Change, record: Record, taken: Taken) -> None:
        seen = decode_listed_trace(record.value)
        if isinstance(seen, ListedTrace):
            header = excerpt(seen.trace, content=self._content)
            change.take_trace(msgspec.structs.replace(seen, trace=header), record.position)
        elif isinstance(seen, SessionRecord):
            change.close_session(seen, record.position)

    def _take_signal(self, change: Change, record: Record, taken: Taken) -> None:
        header = decode_signal_header(record.value)
        json = record.value if self._content else _redacted(record.value)
        if change.take_signal(header, json, record.position):
            taken.signals.append(json)

    def _make_room(self) -> None:
        used = self.store.used()
        while used > HIGH * self._size and self._evict():
            used = self.store.used()
            if used <= LOW * self._size:
                break
        self._families.index_bytes.set(used)

    def _evict(self, at_most: int = _AT_ONCE) -> bool:
        """Evict some of the oldest sessions; whether there were any."""
        sessions = traces = signals = 0
        try:
            with self._env.begin(write=True) as txn:
                change = Change(self.store, txn)
                while sessions < at_most and (gone := change.evict_oldest()) is not None:
                    sessions, traces, signals = sessions + 1, traces + gone[0], signals + gone[1]
        except lmdb.MapFullError:
            if at_most > 1:
                return self._evict(1)
            self._forget_everything("index_full")
            return True
        self._count_gone(sessions, traces, signals, reason="index_full")
        return sessions > 0

    def _count_gone(self, sessions: int, traces: int, signals: int, *, reason: str) -> None:
        for kind, count in (("session", sessions), ("trace", traces), ("signal", signals)):
            if count:
                self._families.evicted.labels(kind, reason).inc(count)

    def _forget_everything(self, reason: str) -> None:
        """There is no room even to evict, or a value is damaged: start again empty."""
        with self._env.begin(write=True) as txn:
            for name in NAMES:
                if name != "about":
                    txn.drop(getattr(self.store, name), delete=False)
        self._families.evicted.labels("index", reason).inc()

    def _forget_other_versions(self) -> None:
        """Start again empty after a change of the layout, or of `redaction.content`."""
        version = VERSION + (b"+content" if self._content else b"")
        with self._env.begin() as txn:
            stored = txn.get(b"version", db=self.store.about)
        if stored == version:
            return
        with self._env.begin(write=True) as txn:
            for name in NAMES:
                txn.drop(getattr(self.store, name), delete=False)
            txn.put(b"version", version, db=self.store.about)


def _redacted(value: bytes) -> bytes:
    return encode_signal(redacted(decode_signal(value)))


def _chunks(records: Sequence[Record], size: int) -> Iterator[Sequence[Record]]:
    """The records in order, cut where the sum of their values passes `size`."""
    first = total = 0
    for at, record in enumerate(records):
        total += len(record.value)
        if total > size and at > first:
            yield records[first:at]
            first, total = at, len(record.value)
    yield records[first:]


def _open(folder: Path, size: int) -> lmdb.Environment:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        discard_damaged(folder, "index")
        return lmdb.open(
            str(folder),
            map_size=size,
            max_dbs=len(NAMES),
            metasync=False,
            readahead=False,
            mode=0o600,
        )
    except (lmdb.Error, OSError) as error:
        raise ConfigError(
            f"{folder}: the index cannot be opened ({error}); delete this folder, it fills again by itself"
        ) from error
