"""The live stream: every new signal to every client. A slow client delays no other client.

A client with more than `WAITING` signals unread is disconnected and counted; it may connect again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from collector.api.families import ApiFamilies

WAITING = 256
CLIENTS = 64
HEARTBEAT = 15.0
"""Seconds between comments that keep idle connections open."""


class Full(Exception):
    """There are `CLIENTS` clients already."""


class Stream:
    """Owned by the event loop."""

    def __init__(self, families: ApiFamilies) -> None:
        self._families = families
        self._clients: set[asyncio.Queue[bytes | None]] = set()
        self._closed = False

    def publish(self, signals: Sequence[bytes]) -> None:
        """Hand signals (JSON) to every client; never waits."""
        for client in list(self._clients):
            for signal in signals:
                if client.full():
                    self._disconnect(client, "slow")
                    break
                client.put_nowait(signal)

    def close(self) -> None:
        """End every client's stream, after what is waiting for it."""
        self._closed = True
        for client in list(self._clients):
            if client.full():
                self._disconnect(client, "slow")
            else:
                client.put_nowait(None)

    def subscribe(self) -> AsyncIterator[bytes]:
        """A client's stream of server-sent events, from now on.

        Raises:
            Full: No more clients are taken.
        """
        if len(self._clients) >= CLIENTS:
            self._families.stream_dropped.labels("too_many").inc()
            raise Full
        client: asyncio.Queue[bytes | None] = asyncio.Queue(WAITING)
        if self._closed:
            client.put_nowait(None)
        self._clients.add(client)
        self._families.stream_clients.set(len(self._clients))
        return self._events(client)

    async def _events(self, client: asyncio.Queue[bytes | None]) -> AsyncIterator[bytes]:
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

    def _disconnect(self, client: asyncio.Queue[bytes | None], reason: str) -> None:
        while not client.empty():
            client.get_nowait()
        client.put_nowait(None)
        self._forget(client)
        self._families.stream_dropped.labels(reason).inc()

    def _forget(self, client: asyncio.Queue[bytes | None]) -> None:
        self._clients.discard(client)
        self._families.stream_clients.set(len(self._clients))
