"""The one thread that writes: all calls that wait at a moment go into one transaction, synced before any is answered.

call 1 -+                       +- records, commits of every call   -+
call 2 -+-> queue -> thread ->  |  released and passed records go    |-> fdatasync -> one wake-up of the loop
call 3 -+                       +- oldest over a share go           -+

Spans go first, as a sender waits for them; of everything else about as much goes along.
No other thread ever writes, so nothing waits for LMDB's lock.
"""

import asyncio
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import lmdb

from collector.base.errors import LogFull, LogUnavailable
from collector.log.disk.store import DiskStore, LogState
from collector.log.disk.transaction import DiskTxn
from collector.log.embedded.polling import SharedLogTime
from collector.log.embedded.retention import Quotas, Retention
from collector.log.families import LogFamilies
from collector.log.port import SPANS, TOPICS, Commit, New, Position, Record

_GROUP_BYTES = 32 << 20  # a transaction takes no further call above this
_BEHIND_BYTES = 1 << 20
"""Bytes of other calls that go along with spans; with more spans than this, as many bytes as theirs."""
_GATHER = 0.002
"""Seconds that the first call waits for others: a transaction and its sync cost more than forty small records."""
_TRIM = 250
"""At most so many released records, and as many passed ones, are deleted in one transaction."""
_RELEASED = 100_000
"""Released positions that may wait; above it the oldest are forgotten: those records go with the commit."""

_FREED = 4 << 20  # bytes of records that go at once where the map has no page left
_MEASURE = 1.0  # seconds between two measurements of the topics' sizes

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class WriteCall:
    records: Sequence[New]
    commits: Sequence[Commit]
    done: asyncio.Future[Sequence[Position]]

    @property
    def size(self) -> int:
        """Bytes of the values that are not computed later."""
        return sum(len(r.value) for r in self.records if isinstance(r.value, bytes))

    @property
    def is_awaited(self) -> bool:
        return bool(self.records) and self.records[0].topic == SPANS


Answer = Sequence[Position] | Exception


class Appended(NamedTuple):
    """The changes that one transaction made to the log."""

    written: Sequence[Record]
    dropped: Sequence[Position]  # records that were dropped to free space


Deliver = Callable[[Sequence[WriteCall], Sequence[Answer], Sequence[Appended]], None]
"""Receives the calls, their answers and the changes to the log. Called in the writer's thread."""


class DiskWriter:
    """Owns every write transaction. No error of the disk ends its thread.

    The queue is as long as there are callers waiting: each waits for its own answer.
    """

    def __init__(
        self,
        store: DiskStore,
        *,
        load: Callable[[], LogState],
        retention: Retention,
        log_time: SharedLogTime,
        families: LogFamilies,
        deliver: Deliver,
        ended: Callable[[BaseException], None],
    ) -> None:
        """`deliver` and `ended` are called in the thread; `ended` if an error ends it."""
        self.state = load()
        self._store = store
        self._load_state = load
        self._retention = retention
        self._least = retention.quotas.max_size // 2
        """Bytes that the log keeps as its own, however often its map was full."""
        self._log_time = log_time
        self._families = families
        self._deliver = deliver
        self._ended = ended
        self._queue: queue.SimpleQueue[WriteCall | None] = queue.SimpleQueue()
        self._behind: deque[WriteCall] = deque()
        """Calls without spans: each transaction takes at least a megabyte of them along."""
        self._ending = False
        self._released: deque[Position] = deque(maxlen=_RELEASED)
        self._more = True
        self._failing = False
        self._measured = 0.0
        self._unmeasured = True
        self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)
        self._thread.start()

    def submit(self, call: WriteCall) -> None:
        self._queue.put(call)

    def release(self, positions: Iterable[Position]) -> None:
        self._released.extend(positions)

    def close(self) -> None:
        """Answer the calls that wait, then end. Blocks."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            self._serve()
        except BaseException as error:  # noqa: BLE001 - else every caller would wait forever
            self._ended(error)

    def _serve(self) -> None:
        closed = False
        while not closed:
            calls, closed = self._take()
            answers, appended = self._answer(calls)
            if calls or appended:
                self._deliver(calls, answers, appended)

    def _take(self) -> tuple[list[WriteCall], bool]:
        """The calls that wait now; an empty list when trimming or measuring is left to do. True: the log closes."""
        calls = self._gather()
        allowed = max(_BEHIND_BYTES, sum(call.size for call in calls))
        behind = 0
        while self._behind and behind < allowed:
            call = self._behind.popleft()
            calls.append(call)
            behind += call.size
        return calls, self._ending and not self._behind

    def _gather(self) -> list[WriteCall]:
        """Empty the queue: the calls that go first are returned, the others wait."""
        first: list[WriteCall] = []
        size = 0
        while size < _GROUP_BYTES and not self._ending:
            idle = not first and not self._behind
            try:
                timeout = _MEASURE if self._unmeasured else None
                call = self._queue.get(block=idle and not self._more, timeout=timeout)
            except queue.Empty:
                break
            if call is None:
                self._ending = True
                break
            if idle:
                time.sleep(_GATHER)
            if call.is_awaited:
                first.append(call)
                size += call.size
            else:
                self._behind.append(call)
        return first

    def _answer(self, calls: Sequence[WriteCall]) -> tuple[list[Answer], list[Appended]]:
        alone = len(calls) <= 1
        try:
            return self._transact(calls)
        except (lmdb.MapFullError, lmdb.TxnFullError) as error:
            if alone:
                self._make_space()
                return [
                    _because(LogFull, "the log's map has no page left", error) for _ in calls
                ], []
        except (lmdb.Error, OSError) as error:
            return self._refuse(calls, error), []
        except Exception as error:  # noqa: BLE001 - no caller would be answered any more
            if alone:
                return self._refuse(calls, error), []
        return self._one_by_one(calls)

    def _make_space(self) -> None:
        """Trim in a transaction of its own: the one that found the map full was rolled back with its trimming.

        From now on the shares are smaller: a map that is full again would have no page left to delete with.
        """
        quotas = self._retention.quotas
        smaller = Quotas(max(quotas.max_size - _FREED, self._least))
        self._retention = replace(self._retention, quotas=smaller)
        try:
            self._store.grow()
            self._transact([], free=_FREED)
        except Exception as error:  # noqa: BLE001 - logged; the calls are answered
            _log.warning("The log's map is full and cannot be trimmed.", exc_info=error)

    def _one_by_one(self, calls: Sequence[WriteCall]) -> tuple[list[Answer], list[Appended]]:
        answered = [self._answer([call]) for call in calls]
        appended = [each for _, some in answered for each in some]
        return [answer for answers, _ in answered for answer in answers], appended

    def _transact(
        self, calls: Sequence[WriteCall], *, free: int = 0
    ) -> tuple[list[Answer], list[Appended]]:
        # What no one waits for becomes more with a commit alone; calls make the room that their own records need.
        trims = self._more or free or any(call.commits for call in calls)
        self._more = False
        released = [self._released.popleft() for _ in range(min(_TRIM, len(self._released)))]
        now = self._log_time.begin()
        try:
            with self._store.writing() as txn:
                work = DiskTxn(self._store, txn, self.state, retention=self._retention, time=now)
                work.release(released)
                if free:
                    work.free(free)
                answers = [_attempt(work, call) for call in calls]
                more = bool(trims) and work.trim(_TRIM)
                work.save()
                self._measure(work)
            self.state = work.state
        except Exception:
            self._released.extendleft(reversed(released))
            raise
        finally:
            self._log_time.finish()
        self._more = more or bool(self._released)
        work.drops.report(self._families)
        self._recovered()
        dropped = work.drops.positions
        appended = [Appended(work.written, dropped)] if work.written or dropped else []
        return answers, appended

    def _measure(self, work: DiskTxn) -> None:
        now = time.monotonic()
        self._unmeasured = now - self._measured < _MEASURE
        if self._unmeasured:
            return
        self._measured = now
        for topic, size in work.sizes(TOPICS).items():
            self._families.bytes.labels(topic).set(size)

    def _refuse(self, calls: Sequence[WriteCall], error: Exception) -> list[Answer]:
        if not self._failing:
            _log.error("The log cannot be written to: %s", error)
        self._failing = True
        if getattr(error, "code", 0) <= 0:
            self._reopen()
        return [_because(LogUnavailable, "the log cannot be written to", error) for _ in calls]

    def _reopen(self) -> None:
        """Errors without the disk's errno may have ended the environment for good."""
        try:
            self._store.reopen()
            self.state = self._load_state()
        except Exception as error:  # noqa: BLE001 - logged; the calls are answered
            _log.debug("The log could not be opened again.", exc_info=error)

    def _recovered(self) -> None:
        if self._failing:
            self._failing = False
            _log.info("The log can be written to again.")


def _attempt(work: DiskTxn, call: WriteCall) -> Answer:
    try:
        admitted = work.admit(call.records, call.commits)
    except lmdb.Error:
        raise
    except Exception as error:  # noqa: BLE001 - the caller's own functions run here, and their errors are its own
        return error
    return work.append(admitted, call.commits)


def _because(kind: type[LogFull | LogUnavailable], what: str, cause: Exception) -> Exception:
    """An answer of its own for each caller: a traceback is added to the one that is raised."""
    error = kind(f"{what}: {cause}")
    error.__cause__ = cause
    return error
