"""A child process of ours and the socket we talk to it over: frames of 4-byte big-endian length and payload."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import sys
from types import TracebackType
from typing import Self

LENGTH = struct.Struct(">I")
MAX_PAUSE = 10.0
_END_TIMEOUT = 3.0


def restart_pause(early_ends: int) -> float:
    """Seconds to wait before the next start, after so many ends in a row that came early."""
    return min(0.1 * 2 ** min(early_ends, 10), MAX_PAUSE)


class Child:
    """`python -m MODULE FD`, told its configuration in the first frame; entered once it has said that it is ready.

    Raises:
        EOFError: the child ended (asyncio.IncompleteReadError is one).
        TimeoutError: it did not become ready in time.
    """

    def __init__(self, module: str, config: bytes, start_timeout: float) -> None:
        self._module = module
        self._config = config
        self._start_timeout = start_timeout

    async def __aenter__(self) -> Self:
        """Start it and wait until it is ready."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                self._module,
                str(theirs.fileno()),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
            )
        self._reader, self._writer = await asyncio.open_connection(sock=ours)
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
        """Close the socket, which ends a healthy child; kill one that hangs."""
        if kind is not None and not issubclass(kind, asyncio.CancelledError):
            self.kill()
        await self._end()

    @property
    def gone(self) -> bool:
        """Whether its end of the socket is known to be closed."""
        return self._reader.at_eof()

    def send(self, payload: bytes) -> None:
        """One frame, buffered: the caller bounds what is unanswered."""
        self.send_frame(LENGTH.pack(len(payload)) + payload)

    def send_frame(self, frame: bytes | bytearray) -> None:
        """A payload that has its length before it already; not to be changed any more."""
        self._writer.write(frame)

    async def receive(self) -> bytes:
        """The next frame."""
        (length,) = LENGTH.unpack(await self._reader.readexactly(4))
        return await self._reader.readexactly(length)

    def kill(self) -> None:
        """End it now: it hangs. Whoever receives is told by EOFError."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def _end(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        try:
            async with asyncio.timeout(_END_TIMEOUT):
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()
