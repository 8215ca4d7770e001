"""One evaluator worker: takes jobs and returns answers over one socket, and ends with it.

    python -m collector.pool.worker FD

The first frame is the configuration (JSON), every later one a job; each is answered in order. Payloads are
msgpack. Only here and offline are numpy and the embedder's model imported.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys

import msgspec

from collector.config.tree import Config
from collector.pool.job_runner import JobRunner, decode_job
from collector.pool.port import ReadJob
from collector.runtime.frames import IncompleteFrameError, pack_frame, read_frames

NICENESS = 10


def main() -> None:
    """Work until the other side closes the socket."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches the whole process group; this process ends at EOF
    os.nice(NICENESS)  # ingest comes first on a busy machine
    # The main process may end while a worker starts or works: that needs no traceback.
    with (
        socket.socket(fileno=int(sys.argv[1])) as link,
        contextlib.suppress(ConnectionError, IncompleteFrameError),
    ):
        work(link)


def work(link: socket.socket) -> None:
    """Answer every job of the socket, in order.

    Raises:
        ConnectionError: the main process ended before it had its answer.
        IncompleteFrameError: the main process ended while it sent a job.
    """
    with link.makefile("rb", buffering=1 << 16) as stream:
        payloads = read_frames(stream)
        config = next(payloads, None)
        if config is None:
            return
        runner = JobRunner.of(Config.model_validate_json(config))
        encode = msgspec.msgpack.Encoder().encode
        link.sendall(pack_frame(b"ready"))
        for payload in payloads:
            job = decode_job(payload)
            answer = runner.read(job) if isinstance(job, ReadJob) else runner.score(job)
            link.sendall(pack_frame(encode(answer)))


if __name__ == "__main__":
    main()
