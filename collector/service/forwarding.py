"""What passes on to the backend under `forward`: everything, or the traces that are kept."""

import asyncio
from contextlib import suppress

from collector.base.clock import Clock
from collector.base.lifecycle import Stages
from collector.base.supervisor import Supervisor
from collector.base.telemetry import Telemetry
from collector.config.forward import Keep
from collector.config.tree import Config, ForwardConfig
from collector.forward.backend import Backends
from collector.forward.broadcasts import FeedbackBroadcaster
from collector.forward.forwarder import Forwarder
from collector.forward.keeper import Keeper
from collector.log.port import Log

BEGINS = 5.0
"""Seconds that a start waits for it, which only a log that cannot be written to uses up."""


class Forwarding:
    """Makes its rooms, a new one after each failure."""

    def __init__(
        self,
        config: Config,
        target: ForwardConfig,
        *,
        log: Log,
        telemetry: Telemetry,
        clock: Clock,
        drains: bool,
    ) -> None:
        self._config = config
        self._target = target
        self._log_port = log
        self._telemetry = telemetry
        self._clock = clock
        self._drains = drains
        self._has_begun = asyncio.Event()
        self._keeps = asyncio.Event()

    async def start(self, stages: Stages, supervisor: Supervisor) -> None:
        """On a log of this process alone, it has its place there before the first request is taken.

        Raises ConfigError: `forward.endpoint` is not an endpoint.
        """
        self._backends()
        waits = [self._has_begun]
        stages.start("forward", supervisor.keep("forward", lambda: self._forwarder().run))
        keep = self._target.keep
        if keep is not None:
            waits.append(self._keeps)
            stages.start("forward", supervisor.keep("forward", lambda: self._keeper(keep).run))
            if keep.feedback:
                stages.start("forward", supervisor.keep("forward", lambda: self._broadcaster().run))
        if self._config.log.kind != "kafka":
            with suppress(TimeoutError):
                async with asyncio.timeout(BEGINS):
                    for each in waits:
                        await each.wait()

    def _backends(self) -> Backends:
        return Backends.configured(self._target, self._telemetry)

    def _forwarder(self) -> Forwarder:
        return Forwarder(
            log=self._log_port,
            backends=self._backends(),
            telemetry=self._telemetry,
            clock=self._clock,
            has_begun=self._has_begun,
            drains=self._drains,
            unread_only=self._target.keep is not None,
        )

    def _keeper(self, settings: Keep) -> Keeper:
        return Keeper(
            log=self._log_port,
            backends=self._backends(),
            settings=settings,
            late=self._config.windows.trace.late,
            telemetry=self._telemetry,
            has_begun=self._keeps,
            drains=self._drains,
        )

    def _broadcaster(self) -> FeedbackBroadcaster:
        return FeedbackBroadcaster(log=self._log_port, telemetry=self._telemetry)
