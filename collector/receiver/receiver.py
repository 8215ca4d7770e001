"""The receiver's two servers over one intake. Wired in collector/app.py."""

from __future__ import annotations

import asyncio
import logging

from collector.clock import Clock
from collector.config.tree import ReceiverConfig
from collector.log.port import Log
from collector.receiver.grpc import GrpcServer
from collector.receiver.http import HttpApp
from collector.receiver.http_server import BoundedProtocol, HttpServer
from collector.receiver.intake import Forward, Intake
from collector.receiver.tls import load
from collector.runtime.http_server import BearerTokens
from collector.telemetry import Telemetry

_log = logging.getLogger(__name__)


class Receiver:
    """OTLP in, over gRPC and HTTP. Owned by the loop that starts it.

    Args:
        log: where spans go; OK is answered only after its `write` returned.
        config: addresses, limits, TLS, tokens.
        max_span: the largest single span in bytes (`windows.trace.max_bytes`); larger ones are rejected and counted.
        telemetry: the process families.
        clock: for the rate of complaints in the log.
        forward: gets the bytes of every request that was taken, as ExportTraceServiceRequest; must not block.
    """

    def __init__(
        self,
        *,
        log: Log,
        config: ReceiverConfig,
        max_span: int,
        telemetry: Telemetry,
        clock: Clock,
        forward: Forward | None = None,
    ) -> None:
        self._config = config
        self._intake = Intake(
            log=log,
            max_request=config.max_request,
            max_span=max_span,
            telemetry=telemetry,
            clock=clock,
            forward=forward,
        )
        self._grpc: GrpcServer | None = None
        self._http: HttpServer | None = None

    @property
    def grpc_port(self) -> int:
        """The real port of gRPC, once started."""
        return self._config.grpc.port if self._grpc is None else self._grpc.port

    @property
    def http_port(self) -> int:
        """The real port of HTTP, once started."""
        return self._config.http.port if self._http is None else self._http.port

    async def start(self) -> None:
        """Bind both ports and serve; all or nothing.

        Raises:
            ConfigError: a port is taken or a TLS file is not what it should be.
        """
        tls = load(self._config.tls)
        bearer = BearerTokens(self._config.bearer_tokens)
        grpc, http = self._config.grpc, self._config.http
        self._http = HttpServer(
            HttpApp(self._intake, bearer, paths=http.paths),
            host=http.host,
            port=http.port,
            tls=tls,
            protocol=BoundedProtocol,
        )
        self._grpc = GrpcServer(
            self._intake,
            bearer,
            host=grpc.host,
            port=grpc.port,
            max_request=self._config.max_request,
            tls=tls,
        )
        await self._grpc.start()
        try:
            await self._http.start()
        except BaseException:
            await self._grpc.stop(0)
            raise

    def stop_accepting(self) -> None:
        """From now on every request is refused as UNAVAILABLE or 503; those in flight go on."""
        self._intake.stop_accepting()
        if self._grpc is not None:
            self._grpc.stop_accepting()

    async def stop(self, grace: float) -> None:
        """Stop accepting, let what is in flight finish within `grace` seconds, close both ports."""
        self.stop_accepting()
        async with asyncio.TaskGroup() as group:
            if self._grpc is not None:
                group.create_task(self._grpc.stop(grace))
            if self._http is not None:
                group.create_task(self._http.stop(grace))
        _log.info("receiver stopped")
