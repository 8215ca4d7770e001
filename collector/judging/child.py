"""The judge process: takes jobs and returns verdicts over one socket, and ends with it. Only it imports litellm.

python -m collector.judging.child FD
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

from collector.config.tree import Config
from collector.judging.answer_cache import AnswerCache
from collector.judging.judge_client import BudgetGate, JudgeClientPool
from collector.judging.judge_job_runner import JudgeJobRunner
from collector.judging.port import (
    BudgetReply,
    FromJudge,
    Job,
    Setup,
    VerdictWritten,
    decode_setup,
    decode_to_judge,
    encode,
)
from collector.runtime.frames import pack_frame, receive_frame
from evaluators.providers.litellm import LiteLlmEmbedder, LiteLlmJudge

NICENESS = 5
CACHE = "judge-cache"


def main() -> None:
    """Work until the other side closes the socket."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches the whole process group; this process ends at EOF
    os.nice(NICENESS)
    asyncio.run(_work(int(sys.argv[1])))


async def _work(descriptor: int) -> None:
    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=descriptor))
    try:
        setup = decode_setup(await receive_frame(reader))
        await _Process(setup, writer).run(reader)
    except* (_EndError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


class _Process:
    """The jobs under way, over the socket of the main process."""

    def __init__(self, setup: Setup, writer: asyncio.StreamWriter) -> None:
        config = Config.model_validate_json(setup.config)
        judge = config.judge
        self._writer = writer
        provider = LiteLlmJudge(
            timeout=judge.timeout,
            temperature=judge.temperature,
            base_url=judge.base_url,
            api_key=setup.api_key,
            price=judge.price and (judge.price.input, judge.price.output),
        )
        provider.load()
        self._gate = BudgetGate(self._send)
        cache = AnswerCache(Path(config.data_dir) / CACHE, judge.cache)
        self._clients = JudgeClientPool(
            provider=provider,
            gate=self._gate,
            cache=cache,
            judge=judge,
            vectors=_vectors(config, setup),
        )
        self._runner = JudgeJobRunner.of(config, self._clients, setup.only)
        self._owners: dict[int, str] = {}

    async def run(self, reader: asyncio.StreamReader) -> None:
        """Answer until the end of the stream."""
        self._frame(b"ready")
        async with asyncio.TaskGroup() as jobs:
            try:
                while True:
                    self._take(await receive_frame(reader), jobs)
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                # The main process has ended: leaving by an error cancels the jobs under way.
                raise _EndError from error

    def _take(self, payload: bytes, jobs: asyncio.TaskGroup) -> None:
        frame = decode_to_judge(payload)
        if isinstance(frame, BudgetReply):
            self._gate.reply(frame.id, granted=frame.granted)
        elif isinstance(frame, VerdictWritten):
            owner = self._owners.pop(frame.id, None)
            if owner is not None:
                self._clients.written(owner)
        else:
            self._owners[frame.id] = frame.owner
            jobs.create_task(self._judge(frame))

    async def _judge(self, job: Job) -> None:
        self._send(await self._runner.run(job))

    def _send(self, frame: FromJudge) -> None:
        self._frame(encode(frame))

    def _frame(self, payload: bytes) -> None:
        self._writer.write(pack_frame(payload))


def _vectors(config: Config, setup: Setup) -> LiteLlmEmbedder | None:
    embedder, price = config.embedder, config.judge.price
    if embedder.kind != "litellm" or embedder.model is None:
        return None
    return LiteLlmEmbedder(
        embedder.model,
        timeout=config.judge.timeout,
        base_url=embedder.base_url,
        api_key=setup.embedder_api_key,
        price=price and (price.input, price.output),
    )


class _EndError(Exception):
    """The main process has closed the socket."""


if __name__ == "__main__":
    main()
