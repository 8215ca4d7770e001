"""The frames on a socket between two processes, and in recordings: a payload behind its length, 4 bytes big-endian.

And the child's end of that socket. Workers import this and no asyncio, which would take 3 MB of each.
"""

import contextlib
import logging
import os
import signal
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from collector.base.errors import TooLarge
from collector.base.printable import log_to_stderr

LENGTH = struct.Struct(">I")
_STEP = 1 << 20  # bytes that are read at once, so that a size which is only announced costs nothing
_CUT = "ends in the middle of a request"
CHILD = 990
"""Thousandths of the memory's limit beside what a child takes: with them it is above a parent that fills the rest."""


class IncompleteFrameError(EOFError):
    """The stream ended within a frame."""


class ByteStream(Protocol):
    def read(self, size: int, /) -> bytes: ...


def pack_frame(payload: bytes) -> bytes:
    return LENGTH.pack(len(payload)) + payload


def read_frames(stream: ByteStream, *, most: int = 1 << 32) -> Iterator[bytes]:
    """Every payload until the end of the stream.

    Raises IncompleteFrameError: the stream ends within a frame. Raises TooLarge: a payload has more than `most` bytes.
    """
    while head := stream.read(LENGTH.size):
        if len(head) < LENGTH.size:
            raise IncompleteFrameError(_CUT)
        (left,) = LENGTH.unpack(head)
        if left > most:
            raise TooLarge(f"a request of {left} bytes; at most {most >> 20} MiB")
        parts: list[bytes] = []
        while left:
            parts.append(stream.read(min(_STEP, left)))
            if not parts[-1]:
                raise IncompleteFrameError(_CUT)
            left -= len(parts[-1])
        yield b"".join(parts)


def killed_before_parent(score: int) -> None:
    """Where memory ends the kernel ends this process first: another one is started, and the parent takes spans."""
    with contextlib.suppress(OSError):  # not Linux
        Path("/proc/self/oom_score_adj").write_text(str(score))


def parent_socket(niceness: int) -> socket.socket:
    """In a child: the socket to its parent. The parent comes first on a busy machine and alone heeds Ctrl-C.

    The child ends when its socket does, which no process that others' code forks in it holds open, and has no other
    descriptor of its parent's. What that code prints goes to stderr: stdout is the command's own.
    """
    os.dup2(2, 1)
    killed_before_parent(CHILD)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(niceness)
    log_to_stderr(logging.WARNING)
    number = int(sys.argv[1])
    with contextlib.suppress(OSError):  # a system without /dev/fd
        # uvloop closes none of the parent's descriptors here: with LMDB's, others' code could write into the log.
        for each in (int(path.name) for path in Path("/dev/fd").iterdir()):
            if each > 2 and each != number:
                os.closerange(each, each + 1)
    os.register_at_fork(after_in_child=lambda: os.closerange(number, number + 1))
    return socket.socket(fileno=number)
