"""A child process and the socket to it, as its parent sees them."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Self, cast

from collector.base.frames import LENGTH, pack_frame
from collector.base.retry import Backoff, Sleep

MOST_WAITING = 1 << 20  # bytes of payloads that no one has taken, from which the socket is not read


class FrameLink(asyncio.Protocol):
    """One end of a socket: frames are sent at once, and wait here until one task takes them.

        socket -> data_received -> payloads that wait -> receive, receive_all

    Waiting for several payloads costs one wake-up, and waiting with a limit no timer of its own: one timer stays, and
    looks when it rings how long the limit has been moved on meanwhile.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._payloads: deque[bytes] = deque()
        self._waiting = 0  # bytes of payloads
        self._part = bytearray()  # the frame that is not complete
        self._needed = 0  # bytes until which it cannot be
        self._is_paused = False
        self._is_at_end = False
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._limit = 0.0  # loop time until which the waiter waits
        self._timer: asyncio.TimerHandle | None = None
        self._closed = asyncio.Event()

    @property
    def has_ended(self) -> bool:
        return self._is_at_end and not self._payloads

    def send_frames(self, framed: Sequence[bytes | bytearray]) -> None:
        """Send payloads that begin with their lengths, buffered, in one piece; lost once the other side has ended."""
        if self._transport is not None:
            self._transport.writelines(framed)

    async def receive(self) -> bytes:
        """The next payload. Raises EOFError: the other side has ended, maybe within a frame."""
        if not self._payloads:
            await self._more(None)
        payload = self._payloads.popleft()
        self._taken(len(payload))
        return payload

    async def receive_all(self, within: float) -> Sequence[bytes]:
        """Every payload that is there, at least one.

        Raises EOFError: the other side has ended, maybe within a frame. Raises TimeoutError: none came within so many
        seconds.
        """
        if not self._payloads:
            await self._more(within)
        payloads, self._payloads = self._payloads, deque()
        self._taken(self._waiting)
        return payloads

    async def close(self) -> None:
        """Close the socket once everything is sent, and wait until it is."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.close()
            await self._closed.wait()

    async def _more(self, within: float | None) -> None:
        if self._is_at_end:
            raise EOFError from self._error
        waiter = self._waiter = self._loop.create_future()
        self._limit = float("inf") if within is None else self._loop.time() + within
        if within is not None:
            self._set_timer()
        try:
            await waiter
        finally:
            self._waiter = None
        if not self._payloads:
            raise EOFError from self._error

    def _taken(self, size: int) -> None:
        self._waiting -= size
        if self._is_paused and self._transport is not None and self._waiting <= MOST_WAITING:
            self._is_paused = False
            self._transport.resume_reading()

    def _set_timer(self) -> None:
        """A timer that rings too early is left alone: it is set again when it rings."""
        if self._timer is not None:
            if self._timer.when() <= self._limit:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(self._limit, self._rings)

    def _rings(self) -> None:
        self._timer = None
        if self._waiter is None or self._waiter.done() or self._limit == float("inf"):
            return
        if self._loop.time() < self._limit:
            self._set_timer()
        else:
            self._waiter.set_exception(TimeoutError())

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._part:
            self._part += data
            if len(self._part) < self._needed:
                return
            view, self._part = memoryview(self._part), bytearray()
        else:
            view = memoryview(data)
        at, end, self._needed = 0, len(view), LENGTH.size
        while end - at >= LENGTH.size:
            size = LENGTH.size + LENGTH.unpack_from(view, at)[0]
            if size > end - at:
                self._needed = size
                break
            self._payloads.append(bytes(view[at + LENGTH.size : at + size]))
            self._waiting += size - LENGTH.size
            at += size
        if at < end:
            self._part += view[at:]
        if self._waiting > MOST_WAITING and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()
        if self._payloads:
            self._wake()

    def eof_received(self) -> bool:
        """The socket stays open: `close` closes it."""
        self._is_at_end = True
        self._wake()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_at_end = True
        self._error = exc
        self._wake()
        self._closed.set()


LONGEST_RESTART = 10.0  # seconds: the longest wait between two starts
_END_TIMEOUT = 3.0
"""Seconds that a child may take to end when its socket is closed, before it is killed."""


def restart_backoff(sleep: Sleep = asyncio.sleep) -> Backoff:
    """The waits before a child that ended early is started again."""
    return Backoff(first=0.1, longest=LONGEST_RESTART, sleep=sleep)


class Child:
    """`python -m MODULE FD`: gets its configuration in the first frame; entering waits until it is ready.

    Raises EOFError: the child ended. Raises TimeoutError: the child did not become ready in time.
    """

    def __init__(
        self,
        module: str,
        config: bytes,
        start_timeout: float,
        turn: AbstractAsyncContextManager[object] = contextlib.nullcontext(),  # noqa: B008 - it has no state
    ) -> None:
        """`turn` is held while it starts, which takes a second of CPU."""
        self._turn = turn
        self._module = module
        self._config = config
        self._start_timeout = start_timeout
        self.start_error: OSError | None = None  # why the system could not start it

    async def __aenter__(self) -> Self:
        async with self._turn:
            return await self._started()

    async def _started(self) -> Self:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-P",  # nothing that is in the working directory is ours
                    "-m",
                    self._module,
                    str(theirs.fileno()),
                    stdin=asyncio.subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    # Ctrl-C reaches the whole session of a terminal, also a child that has not begun to ignore it.
                    # Between the fork and the new session it still does: see `was_interrupted`.
                    start_new_session=True,
                )
            except BaseException as error:
                ours.close()
                self.start_error = error if isinstance(error, OSError) else None
                raise
        _, self._link = await asyncio.get_running_loop().create_connection(FrameLink, sock=ours)
        self.pid = self._process.pid
        try:
            self.send(self._config)
            async with asyncio.timeout(self._start_timeout):
                await self.receive()
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the socket, which ends a healthy child; kill a child that hangs."""
        if kind is not None and not issubclass(kind, asyncio.CancelledError):
            self.kill()
        await self._end()

    @property
    def exit_code(self) -> int | None:
        """As the system tells it, a signal's number below zero; None: it runs, or was not started."""
        return self._process.returncode if hasattr(self, "_process") else None

    @property
    def was_interrupted(self) -> bool:
        """Whether Ctrl-C ended it before it had a session of its own; the parent was interrupted with it."""
        return self.exit_code == -signal.SIGINT

    @property
    def has_ended(self) -> bool:
        return self._link.has_ended

    def send(self, payload: bytes) -> None:
        self.send_frames([pack_frame(payload)])

    def send_frames(self, framed: Sequence[bytes | bytearray]) -> None:
        """Send payloads that begin with their lengths, at once; they must not be changed afterwards."""
        self._link.send_frames(framed)

    async def receive(self) -> bytes:
        return await self._link.receive()

    async def receive_all(self, within: float) -> Sequence[bytes]:
        """Every frame that has come, at least one; TimeoutError if none does within so many seconds."""
        return await self._link.receive_all(within)

    def kill(self) -> None:
        """End a child that hangs, and what it has started. A pending `receive` raises EOFError."""
        # macOS says the second of a group that has ended.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    async def _end(self) -> None:
        try:
            async with asyncio.timeout(_END_TIMEOUT):
                await self._link.close()
                await self._process.wait()
        except TimeoutError:
            pass
        finally:
            self.kill()  # what it has started, where it has ended itself
            await self._process.wait()
