"""The index behind the page and `/api/v1`: agents, sessions, traces and signals, within `serve.index` bytes.

It fills again by itself, so it never stops the service: a record that does not fit is counted and passed over, the
oldest sessions are evicted first and counted.
"""

import logging
import sqlite3
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from collector.api.answers import RequestRefused
from collector.api.change import IndexChange
from collector.api.charts import IndexReader
from collector.api.evaluation_table import DueScore
from collector.api.families import ApiFamilies
from collector.api.feedback_table import Matching
from collector.api.index_file import Closed, IndexFile
from collector.api.store import DamagedError, SignalEntry, excerpt, micros
from collector.base.errors import ConfigError, Retryable, Undecodable
from collector.base.sqlite_file import PAGE, is_damage, is_full
from collector.log.port import Position, Record
from collector.records.external import EvaluationRules
from collector.records.feedback import decode_feedback
from collector.records.signal import decode_signal, encode_signal, redacted
from collector.records.signal_batch import groups_in
from collector.records.trace_views import DecidedTraces, ListedTrace, decode_listed_trace
from collector.records.traces import SessionRecord

_log = logging.getLogger(__name__)
SMALLEST = 4 << 20
HIGH, LOW = 0.98, 0.97
"""Shares of the pages: beyond the first one sessions are evicted, down to the second one."""
_AT_ONCE = (64, 8, 1)  # sessions that one transaction evicts
RESERVE = 64 * PAGE
"""Bytes that stay free: to take words out of the search, the words are first written once more."""
_CHUNK = 32  # one transaction takes at most this part of the limit


@dataclass(slots=True)
class IndexResult:
    signals: list[SignalEntry] = field(default_factory=list[SignalEntry])  # those that are new
    undecodable: list[tuple[Position, Undecodable]] = field(
        default_factory=list[tuple[Position, Undecodable]]
    )
    """Records that cannot be decoded, with the reason."""


_Take = Callable[[IndexChange, Sequence[Record], IndexResult], None]
"""Applies records to the index, and notes the outcome of each."""
T = TypeVar("T")


class _FullError(Exception):
    """The index has all its pages."""


class Index:
    """Owned by one writer at a time; reads may come from any thread. Raises ConfigError: the folder cannot be used."""

    def __init__(
        self, folder: Path, *, size: int, max_traces: int, content: bool, families: ApiFamilies
    ) -> None:
        self._max_traces = max_traces
        self._content = content
        self._families = families
        self._size = max(size, SMALLEST)
        self._is_damaged = False
        self.file = IndexFile(folder, size=self._size, content=content)
        try:
            self.file.open()
        except (sqlite3.Error, OSError) as error:
            raise ConfigError(
                f"{folder}: the index cannot be opened ({error}); delete this folder, it fills again by itself"
            ) from error
        families.index_limit_bytes.set(self._size)

    def take_traces(self, records: Sequence[Record]) -> IndexResult:
        return self._take(records, self._take_traces)

    def take_signals(self, records: Sequence[Record]) -> IndexResult:
        return self._take(records, self._take_groups)

    def take_feedback(self, records: Sequence[Record]) -> IndexResult:
        return self._take(records, self._take_feedback)

    def match(self, *, now: float, max_age: float, scores_max_age: float) -> Matching:
        """Join what waits with what has come: feedback, and scores of others. `now`: log time; all in seconds."""

        def match(change: IndexChange) -> Matching:
            at = micros(now)
            given_up, is_waiting = change.evaluations.match(now=at, max_age=micros(scores_max_age))
            found = change.feedback.match(now=at, max_age=micros(max_age))
            return found._replace(
                scores_given_up=given_up, is_waiting=found.is_waiting or is_waiting
            )

        return self._joining(match, Matching([], 0, is_waiting=True))

    def due_scores(self, rules: EvaluationRules) -> list[DueScore] | None:
        """Some scores of others whose signals must be published, or none of which had a place; None: none is left."""
        due, no_place = self._joining(lambda change: change.evaluations.due(change, rules), ([], 0))
        if no_place:
            self._families.external_dropped.labels("max_names").inc(no_place)
        return due if due or no_place else None

    def published(self, due: Sequence[DueScore]) -> None:
        self._joining(lambda change: change.evaluations.published(due), None)

    def _joining(self, work: Callable[[IndexChange], T], later: T) -> T:
        """In one transaction; `later` where the index is full: the oldest goes, and the next look does the work."""
        try:
            with self._changing() as change:
                return work(change)
        except _FullError:
            self._evict()
            return later

    def sync(self) -> None:
        """What was taken is on the disk when this returns: its records need not be read again.

        Raises OSError: the disk failed.
        """
        self.file.sync()

    @contextmanager
    def reading(self) -> Generator[IndexReader]:
        """One consistent view; close it within the same call.

        Raises Refused: it is closed, and opened again by `reopen`; or it met a damaged value and starts empty with the
        next record.
        """
        try:
            with self.file.reading() as reading:
                yield reading
        except Closed as error:
            raise RequestRefused(503, "the index is being opened again; ask in a moment") from error
        except (sqlite3.Error, DamagedError) as error:
            if isinstance(error, sqlite3.Error) and not is_damage(error):
                raise
            self._is_damaged = True
            raise RequestRefused(503, "the index was damaged on disk and starts empty") from error

    def reopen(self) -> None:
        """Close the file and open it again; until it succeeds, reads are refused.

        Raises Retryable: it cannot be opened now.
        """
        self.file.close()
        try:
            self.file.open()
        except (sqlite3.Error, OSError) as error:
            raise Retryable(f"the index cannot be opened: {error}") from error

    def close(self) -> None:
        self.file.close()

    def _take(self, records: Sequence[Record], take: _Take) -> IndexResult:
        taken = IndexResult()
        for chunk in _chunks(records, self._size // _CHUNK):
            try:
                self._heal()
                self._write(chunk, take, taken)
                self._make_room()
            except (sqlite3.Error, ValueError) as error:
                if isinstance(error, sqlite3.Error) and not is_damage(error):
                    raise
                self._is_damaged = True
                self._heal()
                self._write(chunk, take, taken)
        return taken

    def _heal(self) -> None:
        """Start again empty once a damaged value was met: others may be too, and it fills again by itself."""
        if self._is_damaged:
            self._is_damaged = False
            _log.warning("The index in %s was damaged on disk and starts empty.", self.file.folder)
            self._forget_everything("damaged")

    @contextmanager
    def _changing(self) -> Generator[IndexChange]:
        """A transaction. Raises _FullError: the index has all its pages; nothing was changed."""
        try:
            with self.file.writing() as (connection, packing):
                yield IndexChange(connection, packing)
        except sqlite3.Error as error:
            if is_full(error) and self.file.is_at_limit():
                raise _FullError from error
            raise

    def _write(self, records: Sequence[Record], take: _Take, taken: IndexResult) -> None:
        """All of them in one transaction; where that does not fit, in halves."""
        attempt = IndexResult()
        try:
            with self._changing() as change:
                take(change, records, attempt)
                gone = change.trim(self._max_traces)
                change.finish()
        except _FullError:
            self._halve(records, take, taken)
            return
        taken.signals += attempt.signals
        taken.undecodable += attempt.undecodable
        self._count_gone(0, *gone, reason="session_full")
        if change.feedback.pushed_out:
            self._families.evicted.labels("feedback", "subject_full").inc(
                change.feedback.pushed_out
            )
        if change.evaluations.pushed_out:
            self._families.external_dropped.labels("subject_full").inc(
                change.evaluations.pushed_out
            )

    def _halve(self, records: Sequence[Record], take: _Take, taken: IndexResult) -> None:
        if not self._evict() and len(records) == 1:
            self._families.refused.labels(records[0].position.topic).inc(records[0].count)
            return
        middle = max(1, len(records) // 2)
        for half in (records[:middle], records[middle:]):
            if half:
                self._write(half, take, taken)

    def _take_traces(
        self, change: IndexChange, records: Sequence[Record], taken: IndexResult
    ) -> None:
        found = list(_decoded(records, lambda each: decode_listed_trace(each.value), taken))
        traces = [seen.trace for _, seen in found if isinstance(seen, ListedTrace)]
        closed = [seen for _, seen in found if isinstance(seen, SessionRecord)]
        change.look_up(
            (each.trace_id for each in traces),
            ((each.service, each.session_id) for each in (*traces, *closed)),
            signals=False,
        )
        for record, seen in found:
            if isinstance(seen, ListedTrace):
                header = excerpt(seen.trace, seen.seen, content=self._content)
                change.take_trace(msgspec.structs.replace(seen, trace=header), record.position)
            elif isinstance(seen, DecidedTraces):
                change.decide(seen.decisions)
            elif isinstance(seen, SessionRecord):
                change.close_session(seen, record.position)

    def _take_groups(
        self, change: IndexChange, records: Sequence[Record], taken: IndexResult
    ) -> None:
        found = list(_decoded(records, groups_in, taken))
        subjects = [group.subject for _, groups in found for group in groups]
        change.look_up(
            (each.trace_id for each in subjects if each.trace_id is not None),
            ((each.service, each.session_id) for each in subjects),
            signals=True,
        )
        for record, groups in found:
            for group in groups:
                try:
                    jsons = group.jsons()
                    if not self._content:
                        jsons = [encode_signal(redacted(decode_signal(each))) for each in jsons]
                except Undecodable as error:
                    taken.undecodable.append((record.position, error))
                    continue
                partition = record.position.partition
                taken.signals += change.take_signals(
                    group.subject, group.headers, jsons, partition, group.first
                )

    def _take_feedback(
        self, change: IndexChange, records: Sequence[Record], taken: IndexResult
    ) -> None:
        for record, said in _decoded(records, lambda each: decode_feedback(each.value), taken):
            kept = said if self._content else msgspec.structs.replace(said, comment=None)
            json = record.value if kept is said else msgspec.json.encode(kept)
            held = change.feedback if said.kind == "human" else change.evaluations
            held.put(kept, json, micros(record.time))

    def _make_room(self) -> None:
        limit = self.file.limit - RESERVE
        used = self.file.used()
        if used > HIGH * limit:
            while used > LOW * limit and self._evict():
                used = self.file.used()
        self.file.keep_within()
        self._families.index_bytes.set(used)

    def _evict(self) -> bool:
        """Evict some of the oldest sessions, fewer where there is no room even for that; whether there were any."""
        for count in _AT_ONCE:
            try:
                with self._changing() as change:
                    gone = change.evict_oldest(count)
            except _FullError:
                continue
            self._count_gone(*gone, reason="index_full")
            return gone[0] > 0
        self._forget_everything("index_full")
        return True

    def _count_gone(self, sessions: int, traces: int, signals: int, *, reason: str) -> None:
        for kind, count in (("session", sessions), ("trace", traces), ("signal", signals)):
            if count:
                self._families.evicted.labels(kind, reason).inc(count)

    def _forget_everything(self, reason: str) -> None:
        self.file.start_empty()
        self._families.evicted.labels("index", reason).inc()


def _decoded(
    records: Sequence[Record], decode: Callable[[Record], T], taken: IndexResult
) -> Iterator[tuple[Record, T]]:
    """Each record with what it holds; those that cannot be decoded are noted."""
    for record in records:
        try:
            yield record, decode(record)
        except Undecodable as error:
            taken.undecodable.append((record.position, error))


def _chunks(records: Sequence[Record], size: int) -> Iterator[Sequence[Record]]:
    """The records in order, cut where the sum of their values passes `size`."""
    first = total = 0
    for at, record in enumerate(records):
        total += len(record.value)
        if total > size and at > first:
            yield records[first:at]
            first, total = at, len(record.value)
    yield records[first:]
