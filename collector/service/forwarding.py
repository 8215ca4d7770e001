"""What passes on to the backend under `forward`: everything, or the traces that are kept."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from collector.base.clock import Clock
from collector.base.lifecycle import Stages
from collector.base.supervisor import Supervisor
from collector.base.telemetry import Telemetry
from collector.config.tree import Config, ForwardConfig
from collector.forward.backend import Backends
from collector.forward.broadcasts import FeedbackBroadcaster
from collector.forward.forwarder import Forwarder
from collector.forward.keeper import Keeper
from collector.forward.reader import Way
from collector.log.consumer import Consumer
from collector.log.port import Log

BEGINS = 5.0
"""Seconds that a start waits for it, which only a log that cannot be written to uses up."""


async def start_forwarding(
    config: Config,
    target: ForwardConfig,
    stages: Stages,
    supervisor: Supervisor,
    *,
    log: Log,
    telemetry: Telemetry,
    clock: Clock,
    drains: bool,
) -> None:
    """On a log of this process alone, it has its place there before the first request is taken.

    Raises ConfigError: `forward.endpoint` is not an endpoint.
    """
    keep = target.keep
    begun, keeps = asyncio.Event(), asyncio.Event()

    def way(has_begun: asyncio.Event) -> Way:
        backends = Backends.configured(target, telemetry)
        return Way(
            log=log, backends=backends, telemetry=telemetry, has_begun=has_begun, drains=drains
        )

    def start(made: Callable[[], Consumer]) -> None:
        stages.start("forward", supervisor.keep("forward", lambda: made().run))

    way(begun)
    start(lambda: Forwarder(way(begun), clock=clock, unread_only=keep is not None))
    if keep is None:
        keeps.set()
    else:
        late = config.windows.trace.late
        start(lambda: Keeper(way(keeps), settings=keep, late=late))
        if keep.feedback:
            start(lambda: FeedbackBroadcaster(log=log, telemetry=telemetry))
    if config.log.kind != "kafka":
        with suppress(TimeoutError):
            async with asyncio.timeout(BEGINS):
                await begun.wait()
                await keeps.wait()
