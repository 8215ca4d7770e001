"""The live stream: every new signal as a server-sent event, to each client that reads.

    id: <index>-<sequence>      where a client that comes back with `Last-Event-ID` goes on
    event: signal               data: the signal's JSON
    event: missed               there were signals that the index no longer has: this client does not get them
    event: end                  data: {"reason": "slow" | "stopping" | "busy", "message"}; the connection ends

All clients share the bytes that wait for them. One that has more than `UNREAD_BYTES` unread, or something unread for
`UNREAD_SECONDS`, is let go and counted, so that it delays no other; what it lacks is in the index when it comes again.
"""

import asyncio
import time
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from collector.api.answers import RequestRefused
from collector.api.families import ApiFamilies
from collector.api.index import Index
from collector.api.off_loop import OffLoop
from collector.api.store import SignalEntry, run_of

UNREAD_BYTES: Final = 32 << 20
"""Of events that wait for the slowest client; the other clients share them."""
UNREAD_SECONDS: Final = 30.0
CLIENTS = 32
HEARTBEAT = 15.0
"""Seconds between comments that keep idle connections open."""
BLOCK = 64 << 10  # bytes of events that are sent at once
PAGE = 512  # signals that are read from the index at once
_WHY = {
    "slow": "this client read too slowly; connect again with Last-Event-ID to go on",
    "stopping": "the service stops; connect again with Last-Event-ID to go on",
    "busy": "too many clients read the index; connect again with Last-Event-ID to go on",
}
_MISSED = b'event: missed\ndata: {"message":"the index no longer has some signals that came in between"}\n\n'


class Full(Exception):
    """There are `CLIENTS` clients already."""


class StreamPlace(NamedTuple):
    """Of an event: which index it is in, and its sequence there."""

    index_id: str
    sequence: int


def place_of(text: str) -> StreamPlace:
    """What a `Last-Event-ID` says. Raises ValueError: it is not the id of an event of this stream."""
    index, _, sequence = text.rpartition("-")
    if not (index.isalnum() and sequence.isdecimal() and sequence.isascii() and len(sequence) < 20):
        raise ValueError("Last-Event-ID is not the id of an event of this stream")
    return StreamPlace(index, int(sequence))


@dataclass(slots=True, eq=False)
class _Client:
    at: int  # the number of the block that it reads next
    news: asyncio.Event
    let_go: bool = False


class _Block(NamedTuple):
    events: bytes
    published: float


class Stream:
    """Owned by the event loop; `now`: seconds that never go back."""

    def __init__(
        self,
        families: ApiFamilies,
        index: Index,
        off_loop: OffLoop,
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._families = families
        self._index = index
        self._off_loop = off_loop
        self._now = now
        self._clients: set[_Client] = set()
        self._closed = False
        self._blocks: deque[_Block] = deque()  # what some client has not read
        self._first = 0  # the number of the first of them
        self._bytes = 0
        self._published = StreamPlace("", 0)
        """The newest signal that was handed to the clients, or that was in the index before any was."""

    def publish(self, signals: Sequence[SignalEntry]) -> None:
        """Hand signals to every client; never waits."""
        if not signals:
            return
        index = self._index.file.id
        self._published = StreamPlace(index, signals[-1].sequence)
        if not self._clients:
            return
        now = self._now()
        for events in blocks(index, signals):
            self._blocks.append(_Block(events, now))
            self._bytes += len(events)
        self._let_slow_ones_go(now)
        for client in self._clients:
            client.news.set()

    def close(self) -> None:
        self._closed = True
        for client in self._clients:
            client.news.set()

    def subscribe(self, after: StreamPlace | None = None) -> AsyncIterator[bytes]:
        """A client's stream of server-sent events: from now on, or those after a place.

        Raises Full: no more clients are taken.
        """
        if len(self._clients) >= CLIENTS:
            self._families.stream_dropped.labels("too_many").inc()
            raise Full
        client = _Client(self._first + len(self._blocks), asyncio.Event())
        self._clients.add(client)
        self._families.stream_clients.set(len(self._clients))
        events = self._events(client, after, self._published)
        # A client that hangs up before its answer begins leaves a generator that never ran: no `finally` runs either.
        weakref.finalize(events, self._forget, client)
        return events

    async def _events(
        self, client: _Client, after: StreamPlace | None, until: StreamPlace
    ) -> AsyncIterator[bytes]:
        try:
            yield b": spanwise\nretry: 1000\n\n"
            if after is not None:
                try:
                    async for events in self._earlier(client, after, until):
                        yield events
                except RequestRefused:
                    yield _end("busy")
                    return
            while not client.let_go:
                block = self._next(client)
                if block is not None:
                    yield block
                elif self._closed:
                    yield _end("stopping")
                    return
                elif not await _comes(client.news):
                    yield b": still here\n\n"
            yield _end("slow")
        finally:
            self._forget(client)

    async def _earlier(
        self, client: _Client, after: StreamPlace, until: StreamPlace
    ) -> AsyncIterator[bytes]:
        """What the index has of the signals after a place, up to those that the client's blocks begin with."""
        lacks, sequence = await self._off_loop.run(lambda: self._whereabouts(after))
        if lacks:
            yield _MISSED
        while not client.let_go:
            index, signals = await self._off_loop.run(lambda: self._page(sequence, until))  # noqa: B023 - awaited here
            for events in blocks(index, signals):
                yield events
            if not signals:
                return
            sequence = signals[-1].sequence

    def _whereabouts(self, after: StreamPlace) -> tuple[bool, int]:
        with self._index.reading() as reading:
            if after.index_id != self._index.file.id:
                return True, 0
            return reading.forgotten_run() >= run_of(after.sequence), after.sequence

    def _page(self, sequence: int, until: StreamPlace) -> tuple[str, list[SignalEntry]]:
        with self._index.reading() as reading:
            index = self._index.file.id
            highest = until.sequence if until.index_id == index else None
            return index, reading.since(sequence, highest, PAGE)

    def begin(self) -> None:
        if not self._published.index_id:
            with self._index.reading() as reading:
                self._published = StreamPlace(self._index.file.id, reading.newest_sequence())

    def _next(self, client: _Client) -> bytes | None:
        at = client.at - self._first
        if at >= len(self._blocks):
            client.news.clear()
            return None
        client.at += 1
        events = self._blocks[at].events
        if at == 0:
            self._drop_read()
        return events

    def _let_slow_ones_go(self, now: float) -> None:
        late = 0
        left = self._bytes
        for block in self._blocks:
            if left <= UNREAD_BYTES and block.published > now - UNREAD_SECONDS:
                break
            left -= len(block.events)
            late += 1
        oldest = self._first + late
        for client in [each for each in self._clients if each.at < oldest]:
            client.let_go = True
            client.news.set()
            self._forget(client)
            self._families.stream_dropped.labels("slow").inc()

    def _drop_read(self) -> None:
        needed = min((each.at for each in self._clients), default=self._first + len(self._blocks))
        while self._first < needed:
            self._bytes -= len(self._blocks.popleft().events)
            self._first += 1

    def _forget(self, client: _Client) -> None:
        self._clients.discard(client)
        self._families.stream_clients.set(len(self._clients))
        self._drop_read()


def blocks(index: str, signals: Sequence[SignalEntry]) -> Iterator[bytes]:
    """The events of signals, `BLOCK` bytes at once; a larger one alone."""
    waiting: list[bytes] = []
    size = 0
    for each in signals:
        json = each.json.replace(b"\n", b" ")
        event = b"id: %s-%d\nevent: signal\ndata: %s\n\n" % (index.encode(), each.sequence, json)
        if waiting and size + len(event) > BLOCK:
            yield b"".join(waiting)
            waiting, size = [], 0
        waiting.append(event)
        size += len(event)
    if waiting:
        yield b"".join(waiting)


async def _comes(news: asyncio.Event) -> bool:
    """Wait for news; False if none came before the next heartbeat is due."""
    try:
        async with asyncio.timeout(HEARTBEAT):
            await news.wait()
    except TimeoutError:
        return False
    return True


def _end(reason: str) -> bytes:
    return b'event: end\ndata: {"reason":"%s","message":"%s"}\n\n' % (
        reason.encode(),
        _WHY[reason].encode(),
    )
