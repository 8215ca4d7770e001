"""One evaluator worker: takes jobs and returns answers over one socket, and ends with it.

    python -m collector.pool.worker FD

The first frame is the configuration (JSON), every later one a job; each is answered in order. A frame is a 4-byte
big-endian length and msgpack. Only here and offline are numpy and the embedder's model imported.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import sys
from collections.abc import Iterator

import msgspec

from collector.config.tree import Config
from collector.pool.job_runner import JobRunner, decode_job
from collector.pool.port import ReadJob

_LENGTH = struct.Struct(">I")
NICENESS = 10


def main() -> None:
    """Work until the other side closes the socket."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches the whole process group; this process ends at EOF
    os.nice(NICENESS)  # ingest comes first on a busy machine
    # The main process may end while a worker starts or works: that needs no traceback.
    with socket.socket(fileno=int(sys.argv[1])) as link, contextlib.suppress(ConnectionError):
        work(link)


def work(link: socket.socket) -> None:
    """Answer every job of the socket, in order.

    Raises:
        ConnectionError: the main process ended before it had its answer.
    """
    frames = read_frames(link)
    first = next(frames, None)
    if first is None:
        return
    runner = JobRunner.of(Config.model_validate_json(first))
    encode = msgspec.msgpack.Encoder().encode
    send_frame(link, b"ready")
    for frame in frames:
        job = decode_job(frame)
        answer = runner.read(job) if isinstance(job, ReadJob) else runner.score(job)
        send_frame(link, encode(answer))


def read_frames(link: socket.socket) -> Iterator[bytes]:
    """Frames until the end of the stream."""
    with link.makefile("rb", buffering=1 << 16) as stream:
        while len(head := stream.read(4)) == 4:
            (length,) = _LENGTH.unpack(head)
            frame = stream.read(length)
            if len(frame) < length:
                return
            yield frame


def send_frame(link: socket.socket, payload: bytes) -> None:
    """Send one frame, whole."""
    link.sendall(_LENGTH.pack(len(payload)) + payload)


if __name__ == "__main__":
    main()
