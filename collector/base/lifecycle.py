"""The life of a process: its rooms as stages, and whether it lives and takes spans.

Stages are started from the sinks to the receiver and stopped from the receiver to the sinks.

Liveness is the event loop answering at all; what ends for good (`watch.py`) ends the process, so that none lives on
without its log's writer, a room or a port. Readiness is receivers bound, the first evaluator worker up where the roles
need one, and not stopping. An outage of Kafka or of a judge fails neither, because a restart would not end it; nor does
a worker that dies later, because others serve, and another one is started.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Literal

from prometheus_client import Gauge

from collector.base import watch
from collector.base.clock import next_tick, until_tick

_log = logging.getLogger(__name__)

BEAT = 0.5  # seconds between heartbeats

State = Literal["starting", "ready", "stopping"]
Run = Callable[[asyncio.Event], Awaitable[None]]


class Stages(asyncio.TaskGroup):
    """Tasks that each run until their own stop; one that fails ends the process, which can be started again.

    Used as a context: leaving it by an error cancels what still runs.
    """

    def __init__(self) -> None:
        super().__init__()
        self._running: list[tuple[str, asyncio.Event, asyncio.Task[None]]] = []

    def start(self, name: str, run: Run) -> None:
        stopping = asyncio.Event()
        task = self.create_task(_run(name, run, stopping), name=name)
        self._running.append((name, stopping, task))

    def watch(self, *parts: object) -> None:
        for part in parts:
            if isinstance(part, watch.Watched):
                self.start("watch", partial(watch.watch, part))

    async def until(self, stopping: asyncio.Event) -> None:
        """Wait for `stopping`. A stage that fails meanwhile cancels this wait and ends the context.

        Raises PartEnded: a stage has returned or was cancelled without being stopped.
        """
        await watch.until(stopping, [task for _, _, task in self._running])

    async def stop(self, *names: str) -> None:
        """Stop the stages of these names, together, and wait until they have."""
        chosen = [each for each in self._running if each[0] in names]
        self._running = [each for each in self._running if each[0] not in names]
        for _, stopping, _ in chosen:
            stopping.set()
        if chosen:
            await asyncio.wait([task for _, _, task in chosen])


async def _run(name: str, run: Run, stopping: asyncio.Event) -> None:
    try:
        await run(stopping)
    except Exception:
        _log.exception("Stage `%s` failed; the process ends and can be started again", name)
        raise


class Health:
    """Set by `collector/service/app.py`, read by `/readyz`.

    `lag`: takes the seconds by which the last heartbeat was late. `monotonic`: seconds that never jump.
    """

    def __init__(self, lag: Gauge, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._lag = lag
        self._monotonic = monotonic
        self.started = False  # receivers are bound
        self.has_worker = True  # the first evaluator worker has been up, or the roles need none
        self.stopping = False

    @property
    def state(self) -> State:
        if self.stopping:
            return "stopping"
        return "ready" if self.started and self.has_worker else "starting"

    async def run(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            await self.beat(stopping)

    async def beat(self, stopping: asyncio.Event, *, every: float = BEAT) -> None:
        due = self._monotonic() + until_tick(every)
        await next_tick(every, stopping)
        self._lag.set(max(0.0, self._monotonic() - due))
