"""A child process and the socket to it, as its parent sees them."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from collector.base.frame_link import FrameLink
from collector.base.frames import pack_frame
from collector.base.retry import Backoff, Sleep

LONGEST_RESTART = 10.0
"""Seconds: the longest wait between two starts."""
_END_TIMEOUT = 3.0
"""Seconds that a child may take to end when its socket is closed, before it is killed."""


def restart_backoff(sleep: Sleep = asyncio.sleep) -> Backoff:
    """The waits before a child that ended early is started again."""
    return Backoff(first=0.1, longest=LONGEST_RESTART, sleep=sleep)


class Child:
    """`python -m MODULE FD`: gets its configuration in the first frame; entering waits until it is ready.

    Raises:
        EOFError: the child ended.
        TimeoutError: the child did not become ready in time.
    """

    def __init__(self, module: str, config: bytes, start_timeout: float) -> None:
        self._module = module
        self._config = config
        self._start_timeout = start_timeout

    async def __aenter__(self) -> Self:
        """Start the child and wait until it is ready."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",  # nothing that stands in the working directory is ours
                "-m",
                self._module,
                str(theirs.fileno()),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                # Ctrl-C reaches the whole session of a terminal, also a child that has not begun to ignore it. Between
                # the fork and the new session it still does: see `was_interrupted`.
                start_new_session=True,
            )
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
        """Whether the child's end of the socket is known to be closed, and all that it sent is received."""
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
        """End a child that hangs. A pending `receive` raises EOFError."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def _end(self) -> None:
        try:
            async with asyncio.timeout(_END_TIMEOUT):
                await self._link.close()
                await self._process.wait()
        except (TimeoutError, asyncio.CancelledError) as error:
            self.kill()
            await self._process.wait()
            if isinstance(error, asyncio.CancelledError):
                raise
