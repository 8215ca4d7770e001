"""Two readers fill the index, groups `api.traces` and `api.signals`, and offer every new signal to the live stream.

    1. poll
    2. index the batch, in a thread
    3. offer new signals to the live stream
    4. sync the index and commit, at most once a second

A crash between 2 and 4 reads records again; the index takes the same record twice without a change. A client of the
stream with more than `WAITING` signals or `WAITING_BYTES` unread is disconnected and counted, so that it delays no
other client; it may connect again.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial

from collector.api.families import ApiFamilies
from collector.api.index import Index, Taken
from collector.base.clock import Clock
from collector.base.retry import Retry
from collector.base.telemetry import Telemetry
from collector.log.consumer import Consumer
from collector.log.port import BACKGROUND_LINGER, SIGNALS, TRACES, Batch, Log, Record

TRACES_GROUP, SIGNALS_GROUP = "api.traces", "api.signals"
COMMIT_EVERY = 1.0
"""Seconds."""
WAITING, WAITING_BYTES = 256, 4 << 20
"""Signals, and their bytes, that a client of the stream may have unread."""
CLIENTS = 32
HEARTBEAT = 15.0
"""Seconds between comments that keep idle connections open."""


class Feed:
    """Both readers, and the thread in which the index is written."""

    def __init__(
        self, *, log: Log, index: Index, stream: Stream, telemetry: Telemetry, clock: Clock
    ) -> None:
        # One thread: SQLite has one writer, and the event loop never waits for its disk.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="index")
        reader = partial(
            _Reader,
            log=log,
            sync=index.sync,
            thread=self._thread,
            stream=stream,
            telemetry=telemetry,
            clock=clock,
        )
        self._readers = (
            reader(group=TRACES_GROUP, topic=TRACES, index=index.take_traces),
            reader(group=SIGNALS_GROUP, topic=SIGNALS, index=index.take_signals),
        )

    async def run(self, stopping: asyncio.Event) -> None:
        """Fill the index; ends soon after `stopping`, with everything committed that was indexed."""
        with self._thread:
            async with asyncio.TaskGroup() as tasks:
                for each in self._readers:
                    tasks.create_task(each.run(stopping))


class _Reader(Consumer):
    """Puts the records of one topic into the index."""

    def __init__(  # noqa: PLR0913 - its collaborators, one by one
        self,
        *,
        log: Log,
        group: str,
        topic: str,
        index: Callable[[Sequence[Record]], Taken],
        sync: Callable[[], None],
        thread: Executor,
        stream: Stream,
        telemetry: Telemetry,
        clock: Clock,
    ) -> None:
        super().__init__(
            log=log,
            group=group,
            topic=topic,
            retry=Retry(f"The index's reader of {topic}"),
            telemetry=telemetry,
            linger=BACKGROUND_LINGER,
        )
        self._index = index
        self._sync = sync
        self._thread = thread
        self._stream = stream
        self._clock = clock
        self._committed_at = clock()

    async def take(self, batch: Batch) -> None:
        """Index the records, and offer the signals among them that are new."""
        if not batch.records:
            return
        loop = asyncio.get_running_loop()
        taken = await loop.run_in_executor(self._thread, self._index, batch.records)
        self._stream.publish(taken.signals)
        for position, error in taken.undecodable:
            self._poison.unprocessable(position, error)
        for record in batch.records:
            self._offsets.done(record.position)

    async def commit(self) -> None:
        """At most once a second."""
        is_due = abs(self._clock() - self._committed_at) >= COMMIT_EVERY
        if is_due and self._offsets.commits():
            await self._commit()
            self._committed_at = self._clock()

    async def finish(self) -> None:
        """Commit what was indexed since the last commit."""
        await self._commit()

    async def _commit(self) -> None:
        """The index is on the disk before the log hears that its records need not be read again."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._sync)
        await super().commit()


class Full(Exception):
    """There are `CLIENTS` clients already."""


class _Client:
    """The signals that one client of the stream has not read yet; None ends it."""

    def __init__(self) -> None:
        self._unread: asyncio.Queue[bytes | None] = asyncio.Queue(WAITING)
        self._size = 0

    def offer(self, signal: bytes | None) -> bool:
        """Add a signal, or the end; False if there is no room for it."""
        size = len(signal or b"")
        if self._unread.full() or self._size + size > WAITING_BYTES:
            return False
        self._unread.put_nowait(signal)
        self._size += size
        return True

    async def get(self) -> bytes | None:
        """The next signal; waits for it."""
        signal = await self._unread.get()
        self._size -= len(signal or b"")
        return signal

    def end(self) -> None:
        """The end comes next, whatever is unread."""
        while not self._unread.empty():
            self._unread.get_nowait()
        self._size = 0
        self._unread.put_nowait(None)


class Stream:
    """Owned by the event loop."""

    def __init__(self, families: ApiFamilies) -> None:
        self._families = families
        self._clients: set[_Client] = set()
        self._closed = False

    def publish(self, signals: Sequence[bytes]) -> None:
        """Hand signals (JSON) to every client; never waits."""
        for client in list(self._clients):
            for signal in signals:
                if not client.offer(signal):
                    self._disconnect(client, "slow")
                    break

    def close(self) -> None:
        """End every client's stream, after what is waiting for it."""
        self._closed = True
        for client in list(self._clients):
            if not client.offer(None):
                self._disconnect(client, "slow")

    def subscribe(self) -> AsyncIterator[bytes]:
        """A client's stream of server-sent events, from now on.

        Raises:
            Full: No more clients are taken.
        """
        if len(self._clients) >= CLIENTS:
            self._families.stream_dropped.labels("too_many").inc()
            raise Full
        client = _Client()
        if self._closed:
            client.offer(None)
        self._clients.add(client)
        self._families.stream_clients.set(len(self._clients))
        events = self._events(client)
        # A client that hangs up before its answer begins leaves a generator that never ran: no `finally` runs either.
        weakref.finalize(events, self._forget, client)
        return events

    async def _events(self, client: _Client) -> AsyncIterator[bytes]:
        try:
            yield b": spanwise\n\n"
            while True:
                try:
                    async with asyncio.timeout(HEARTBEAT):
                        signal = await client.get()
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                if signal is None:
                    return
                yield b"event: signal\ndata: " + signal.replace(b"\n", b" ") + b"\n\n"
        finally:
            self._forget(client)

    def _disconnect(self, client: _Client, reason: str) -> None:
        client.end()
        self._forget(client)
        self._families.stream_dropped.labels(reason).inc()

    def _forget(self, client: _Client) -> None:
        self._clients.discard(client)
        self._families.stream_clients.set(len(self._clients))
