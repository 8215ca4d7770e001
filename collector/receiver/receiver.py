"""The receiver's two servers over one intake."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from collector.base.clock import Clock
from collector.base.families import RuntimeFamilies
from collector.base.http_server import BearerTokens
from collector.base.telemetry import Telemetry
from collector.config.tree import ReceiverConfig
from collector.log.port import Log
from collector.otlp.signal import DroppedSignal, OtlpSignal
from collector.receiver.families import ReceiverFamilies
from collector.receiver.grpc import GrpcServer
from collector.receiver.http import HttpApp, HttpServer
from collector.receiver.intake import Intake
from collector.receiver.overload import Overload
from collector.receiver.splitter import Splitter
from collector.receiver.tls import load
from collector.receiver.wrong_door import WrongDoor
from collector.records.otlp_signals import DROPPED_SIGNALS, OTLP_SIGNALS, TRACES

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Receiver:
    """OTLP in, over gRPC and HTTP. Owned by the loop that starts it."""

    log: Log  # where spans go; OK is answered only after its `write` returned
    config: ReceiverConfig
    splitter: Splitter
    telemetry: Telemetry
    clock: Clock  # for the rate of log lines about own faults, and who was refused lately
    share: float = (
        0.5  # of the bytes in flight, what one sender may hold while others wait (`fairness.share`)
    )
    signals: Sequence[OtlpSignal] = OTLP_SIGNALS
    behind: Callable[[], float] | None = None
    """Seconds that the oldest closed trace has waited for its score; None: not known in this process."""
    _families: RuntimeFamilies = field(init=False)
    _wrong_door: WrongDoor = field(init=False)
    _intake: Intake = field(init=False)
    _grpc: GrpcServer | None = None
    _http: HttpServer | None = None

    def __post_init__(self) -> None:
        self._families = RuntimeFamilies(self.telemetry)
        families = ReceiverFamilies(self.telemetry, self.signals)
        self._wrong_door = WrongDoor(families, grpc_port=lambda: self.grpc_port)
        self._intake = Intake(
            log=self.log,
            max_request=self.config.max_request,
            splitter=self.splitter,
            families=families,
            clock=self.clock,
            body_timeout=self.config.body_timeout,
            share=self.share,
            overload=Overload(
                clock=self.clock, limit=self.config.max_score_lag, behind=self.behind
            ),
        )

    @property
    def grpc_port(self) -> int:
        return self.config.grpc.port if self._grpc is None else self._grpc.port

    @property
    def http_port(self) -> int:
        return self.config.http.port if self._http is None else self._http.port

    async def start(self) -> None:
        """Bind both ports and serve; all or nothing.

        Raises ConfigError: a port is taken or a TLS file is not what it should be.
        """
        tls = load(self.config.tls)
        bearer = BearerTokens(self.config.bearer_tokens)
        grpc, http = self.config.grpc, self.config.http
        self._http = HttpServer(
            app=HttpApp(
                intake=self._intake,
                bearer=bearer,
                wrong_door=self._wrong_door,
                paths=self._paths(),
                host=http.host,
                origins=http.cors,
            ),
            host=http.host,
            port=http.port,
            tls=tls,
            families=self._families,
            origins=http.cors,
        )
        self._grpc = GrpcServer(
            intake=self._intake,
            bearer=bearer,
            signals=self.signals,
            dropped=DROPPED_SIGNALS,
            host=grpc.host,
            port=grpc.port,
            max_request=self.config.max_request,
            tls=tls,
            body_timeout=self.config.body_timeout,
            closed=self._families.closed("grpc"),
            http_port=lambda: self.http_port,
        )
        await self._grpc.start()
        try:
            await self._http.start()
        except BaseException:
            await self._grpc.stop(0)
            raise

    def _paths(self) -> dict[str, OtlpSignal | DroppedSignal]:
        served: tuple[OtlpSignal | DroppedSignal, ...] = (*self.signals, *DROPPED_SIGNALS)
        own = {each.service.path: each for each in served if each is not TRACES}
        return own | dict.fromkeys(self.config.http.paths, TRACES)

    async def watch(self) -> None:
        if self._http is not None:
            await self._http.watch()

    async def leave(self, at_once: asyncio.Event) -> None:
        """Take requests for `receiver.stop_delay` seconds more, or until `at_once`, for who has not heard of the stop.

        Meanwhile gRPC's health says NOT_SERVING, and answers over HTTP end their connections.
        """
        self._announce()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.config.stop_delay or 0.0):
                await at_once.wait()

    def stop_accepting(self) -> None:
        """From now on every request is refused as UNAVAILABLE or 503; those in flight go on."""
        self._announce()
        self._intake.stop_accepting()

    def _announce(self) -> None:
        if self._grpc is not None:
            self._grpc.leave()
        if self._http is not None:
            self._http.leave()

    async def stop(self, grace: float) -> None:
        """Stop accepting, let what is in flight finish within `grace` seconds, close both ports."""
        self.stop_accepting()
        async with asyncio.TaskGroup() as group:
            if self._grpc is not None:
                group.create_task(self._grpc.stop(grace))
            if self._http is not None:
                group.create_task(self._http.stop(grace))
        _log.info("The receiver stopped.")
