"""A child process and the socket to it, as its parent sees them."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from collector.base.frames import LENGTH, pack_frame
from collector.base.retry import Backoff, Sleep

MOST_WAITING = 1 << 20  # bytes that no one has taken, from which the socket is not read
MOST_OF_THEIRS = 2 << 20
"""Bytes of a payload where others' code runs, which may write a length of 4 GiB to the socket. A verdict has 1 MiB."""
MOST_PRINTED = 64 << 10
"""Bytes of what it prints that are passed on in a second, which a pipe holds: without end it would fill the disk that
our own output goes to."""


class _Protocol(asyncio.StreamReaderProtocol):
    def connection_lost(self, exc: Exception | None) -> None:
        """What came before a reset still counts."""
        del exc
        super().connection_lost(None)


LONGEST_RESTART = 10.0  # seconds: the longest wait between two starts
_END_TIMEOUT = 3.0
"""Seconds that a child may take to end when its socket is closed, before it is killed."""


def restart_backoff(sleep: Sleep = asyncio.sleep) -> Backoff:
    """The waits before a child that ended early is started again."""
    return Backoff(first=0.1, longest=LONGEST_RESTART, sleep=sleep)


@dataclass(eq=False)
class Child:
    """`python -m MODULE FD`: gets its configuration in the first frame; entering waits until it is ready.

    `turn` is held while it starts, which takes a second of CPU. `is_theirs`: others' code runs in it. Raises EOFError:
    the child ended. Raises TimeoutError: the child did not become ready in time.
    """

    module: str
    config: bytes
    start_timeout: float
    turn: AbstractAsyncContextManager[object] = field(default_factory=contextlib.nullcontext)
    is_theirs: bool = False
    start_error: OSError | None = field(default=None, init=False)
    """Why the system could not start it."""
    _printed: int = field(default=-1, init=False)  # what it prints, where it is theirs
    _passing_on: asyncio.TimerHandle | None = field(default=None, init=False)

    async def __aenter__(self) -> Self:
        async with self.turn:
            return await self._started()

    async def _started(self) -> Self:
        ours, theirs = socket.socketpair()
        prints = None
        if self.is_theirs:
            self._printed, prints = os.pipe()
            os.set_blocking(self._printed, False)
        with theirs:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-P",  # nothing that is in the working directory is ours
                    "-m",
                    self.module,
                    str(theirs.fileno()),
                    stdin=asyncio.subprocess.DEVNULL,
                    stderr=prints,
                    pass_fds=(theirs.fileno(),),
                    # Ctrl-C reaches the whole session of a terminal, also a child that has not begun to ignore it.
                    # Between the fork and the new session it still does: see `was_interrupted`.
                    start_new_session=True,
                )
            except BaseException as error:
                ours.close()
                self._stop_passing_on()
                self.start_error = error if isinstance(error, OSError) else None
                raise
            finally:
                if prints is not None:
                    os.close(prints)
        if self.is_theirs:
            self._pass_on()
        await self._connect(ours)
        self.pid = self._process.pid
        try:
            self.send(self.config)
            async with asyncio.timeout(self.start_timeout):
                self.first = await self.receive()
        except BaseException as error:
            if isinstance(error, TimeoutError):
                self.kill()
            await self._end()
            raise
        return self

    async def _connect(self, ours: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._reader = reader = asyncio.StreamReader(limit=MOST_WAITING)
        made = await loop.create_connection(lambda: _Protocol(reader), sock=ours)
        self._writer = asyncio.StreamWriter(*made, reader, loop)

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
        return self._reader.at_eof()

    def send(self, payload: bytes) -> None:
        self.send_frames([pack_frame(payload)])

    def send_frames(self, framed: Sequence[bytes | bytearray]) -> None:
        """Send payloads that begin with their lengths, at once; lost once the child has ended.

        They must not be changed afterwards.
        """
        self._writer.writelines(framed)

    async def receive(self) -> bytes:
        """The next payload.

        Raises EOFError: the child has ended, maybe within one, or others' code begins one of more than MOST_OF_THEIRS.
        """
        (length,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
        if self.is_theirs and length > MOST_OF_THEIRS:
            raise EOFError
        return await self._reader.readexactly(length)

    def kill(self) -> None:
        """End a child that hangs, and what it has started. A pending `receive` raises EOFError."""
        # macOS says the second of a group that has ended.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def _pass_on(self) -> None:
        """Whoever prints more waits, and in the end for longer than it may take."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._printed)
        try:
            said = os.read(self._printed, MOST_PRINTED)
        except BlockingIOError:
            loop.add_reader(self._printed, self._pass_on)
            return
        if said:  # else no process is left that could print
            self._passing_on = loop.call_later(1.0, self._pass_on)
            _print(said)

    def _stop_passing_on(self) -> None:
        if self._printed < 0:
            return
        if self._passing_on is not None:
            self._passing_on.cancel()
        asyncio.get_running_loop().remove_reader(self._printed)
        with contextlib.suppress(BlockingIOError):
            _print(os.read(self._printed, MOST_PRINTED))
        os.close(self._printed)
        self._printed = -1

    async def _end(self) -> None:
        try:
            async with asyncio.timeout(_END_TIMEOUT):
                self._writer.close()
                await self._writer.wait_closed()
                await self._process.wait()
        except TimeoutError:
            pass
        finally:
            self.kill()  # what it has started, where it has ended itself
            await self._process.wait()
            self._stop_passing_on()


def _print(said: bytes) -> None:
    with contextlib.suppress(OSError):  # our own stderr is gone
        os.write(2, said)
