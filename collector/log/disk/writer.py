"""The one thread that writes: all calls that wait at a moment go into one transaction, synced before any is answered.

call 1 -+                       +- records, commits of every call   -+
call 2 -+-> queue -> thread ->  |  released and passed records go    |-> fdatasync -> one wake-up of the loop
call 3 -+                       +- oldest over a share go           -+

Spans go first, as a sender waits for them; of everything else about as much goes along.
No other thread ever writes, so nothing waits for LMDB's lock.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import lmdb

from collector.errors import LogFull, LogUnavailable
from collector.log.disk.store import DiskStore, Heads
from collector.log.disk.transaction import DiskTxn
from collector.log.embedded.log_time import LogTime
from collector.log.embedded.retention import Retention
from collector.log.embedded.staging import Staged
from collector.log.port import SPANS, TOPICS, Commit, New, Position
from collector.telemetry import Telemetry

_GROUP_BYTES = 32 << 20
"""A transaction takes no further call above this."""
_BEHIND_BYTES = 1 << 20
"""What goes along with fewer spans than that; with more, as much: a transaction lasts as long as it is large."""
_GATHER = 0.001
"""Seconds that the first call waits for others: a transaction and its sync cost more than forty small records."""
_TRIM = 250
"""Records that one transaction deletes at most because they were released, and because they were passed."""
_RELEASED = 100_000
"""Released positions that may wait; of more the oldest are forgotten, and go with the commit."""

_MEASURE = 1.0
"""Seconds between two measurements of the topics' sizes."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One `write`, waiting for its answer."""

    records: Sequence[New]
    commits: Sequence[Commit]
    done: asyncio.Future[Sequence[Position]]

    @property
    def size(self) -> int:
        """Bytes of the values that are known already."""
        return sum(len(r.value) for r in self.records if isinstance(r.value, bytes))

    @property
    def is_awaited(self) -> bool:
        """Whether a sender waits for it: it is spans that are written."""
        return bool(self.records) and self.records[0].topic == SPANS


Answer: TypeAlias = Sequence[Position] | Exception


class Grown(NamedTuple):
    """What one transaction did to the log."""

    written: Sequence[Staged]
    time: float
    dropped: frozenset[str]
    """Topics that lost records for want of room."""


Deliver: TypeAlias = Callable[[Sequence[Call], Sequence[Answer], Sequence[Grown]], None]
"""Takes the calls, their answers and how the log grew. Called in the writer's thread."""


class DiskWriter:
    """Owns every write transaction. Whatever the disk says, the thread goes on.

    The queue is as long as there are callers waiting: each waits for its own answer.
    """

    def __init__(
        self,
        store: DiskStore,
        *,
        load: Callable[[], Heads],
        retention: Retention,
        log_time: LogTime,
        telemetry: Telemetry,
        deliver: Deliver,
    ) -> None:
        self.heads = load()
        self._store = store
        self._load = load
        self._retention = retention
        self._log_time = log_time
        self._telemetry = telemetry
        self._deliver = deliver
        self._queue: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._behind: deque[Call] = deque()
        """Calls that wait for a transaction with room: that of spans takes them along a megabyte at a time."""
        self._ending = False
        self._released: deque[Position] = deque(maxlen=_RELEASED)
        self._more = True
        self._failing = False
        self._measured = 0.0
        self._unmeasured = True
        self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)
        self._thread.start()

    def submit(self, call: Call) -> None:
        """Have the call answered; from the event loop's thread."""
        self._queue.put(call)

    def release(self, positions: Iterable[Position]) -> None:
        """Have the records deleted in the next transaction."""
        self._released.extend(positions)

    def close(self) -> None:
        """Answer what waits, then end. Blocks."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        closed = False
        while not closed:
            calls, closed = self._take()
            answers, grown = self._answer(calls)
            if calls or grown:
                self._deliver(calls, answers, grown)

    def _take(self) -> tuple[list[Call], bool]:
        """The calls that wait now, or none when there is trimming or measuring left to do. True: the log closes."""
        calls = self._gather()
        room = max(_BEHIND_BYTES, sum(call.size for call in calls))
        behind = 0
        while self._behind and behind < room:
            call = self._behind.popleft()
            calls.append(call)
            behind += call.size
        return calls, self._ending and not self._behind

    def _gather(self) -> list[Call]:
        """Empty the queue: the calls that go first are returned, the others stand in line."""
        first: list[Call] = []
        size = 0
        while size < _GROUP_BYTES and not self._ending:
            idle = not first and not self._behind
            try:
                call = self._queue.get(block=idle and not self._more, timeout=self._patience())
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

    def _patience(self) -> float | None:
        return _MEASURE if self._unmeasured else None

    def _answer(self, calls: Sequence[Call]) -> tuple[list[Answer], list[Grown]]:
        alone = len(calls) <= 1
        try:
            return self._transact(calls)
        except (lmdb.MapFullError, lmdb.TxnFullError) as error:
            if alone:
                self._make_space()
                return [_full(error) for _ in calls], []
        except (lmdb.Error, OSError) as error:
            return self._refuse(calls, error), []
        except Exception as error:  # noqa: BLE001 - a writer that dies would take every room with it
            if alone:
                return self._refuse(calls, error), []
        return self._one_by_one(calls)

    def _make_space(self) -> None:
        """Trim in a transaction of its own: the one that found the map full took its trimming down with it."""
        try:
            self._store.grow()
            self._transact([])
        except Exception as error:
            _logger.warning("The log's map is full and cannot be trimmed.", exc_info=error)

    def _one_by_one(self, calls: Sequence[Call]) -> tuple[list[Answer], list[Grown]]:
        """What spoils the transaction of all may be the fault of one."""
        answered = [self._answer([call]) for call in calls]
        grown = [each for _, some in answered for each in some]
        return [answer for answers, _ in answered for answer in answers], grown

    def _transact(self, calls: Sequence[Call]) -> tuple[list[Answer], list[Grown]]:
        self._more = False
        released = [self._released.popleft() for _ in range(min(_TRIM, len(self._released)))]
        now = self._log_time.begin()
        try:
            with self._store.writing() as txn:
                work = DiskTxn(self._store, txn, self.heads, retention=self._retention, time=now)
                work.release(released)
                answers = [_attempt(work, call) for call in calls]
                more = work.trim(_TRIM)
                work.save()
                self._measure(work)
            self.heads = work.heads
        except Exception:
            self._released.extendleft(reversed(released))
            raise
        finally:
            self._log_time.settle()
        self._more = more or bool(self._released)
        work.drops.report(self._telemetry)
        self._recovered()
        dropped = work.drops.topics
        grown = [Grown(work.written, now, dropped)] if work.written or dropped else []
        return answers, grown

    def _measure(self, work: DiskTxn) -> None:
        now = time.monotonic()
        self._unmeasured = now - self._measured < _MEASURE
        if self._unmeasured:
            return
        self._measured = now
        for topic, size in work.sizes(TOPICS).items():
            self._telemetry.log_bytes.labels(topic).set(size)

    def _refuse(self, calls: Sequence[Call], error: Exception) -> list[Answer]:
        if not self._failing:
            _logger.error("The log cannot be written to.", exc_info=error)
        self._failing = True
        if getattr(error, "code", 0) <= 0:
            self._reopen()
        return [_unavailable(error) for _ in calls]

    def _reopen(self) -> None:
        """Errors without the disk's errno may have ended the environment for good."""
        try:
            self._store.reopen()
            self.heads = self._load()
        except Exception as error:
            _logger.debug("The log could not be opened again.", exc_info=error)

    def _recovered(self) -> None:
        if self._failing:
            self._failing = False
            _logger.info("The log can be written to again.")


def _attempt(work: DiskTxn, call: Call) -> Answer:
    try:
        admitted = work.admit(call.records, call.commits)
    except lmdb.Error:
        raise
    except Exception as error:  # noqa: BLE001 - the caller's own functions run here; it gets what they raise
        return error
    return work.append(admitted, call.commits)


def _full(error: lmdb.Error) -> LogFull:
    full = LogFull(f"the log's map has no page left: {error}")
    full.__cause__ = error
    return full


def _unavailable(error: Exception) -> LogUnavailable:
    unavailable = LogUnavailable(f"the log cannot be written to: {error}")
    unavailable.__cause__ = error
    return unavailable
