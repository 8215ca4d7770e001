"""The first contact with the cluster: at once if it answers, else in the background until it does."""

from __future__ import annotations

import asyncio
import logging
import ssl

from aiokafka.conn import create_conn
from aiokafka.errors import (
    AuthenticationFailedError,
    ClusterAuthorizationFailedError,
    KafkaError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
    UnsupportedSaslMechanismError,
)

from collector.errors import ConfigError, LogUnavailable
from collector.kafka.client import ClientSettings, ended
from collector.log.kafka.cluster import Link
from collector.log.kafka.topics import ensure

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
REFUSED = (
    AuthenticationFailedError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
    ClusterAuthorizationFailedError,
    TopicAuthorizationFailedError,
    ssl.SSLCertVerificationError,
)
_log = logging.getLogger(__name__)


class Connecting:
    """Sets `link.topics` once the cluster has been reached."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Try once; go on in the background when nobody answers.

        Raises:
            ConfigError: something answers, and only a human can mend it.
        """
        try:
            await self._try()
        except LogUnavailable as error:
            _log.warning("Kafka is not there yet; waiting for it: %s", error)
            self._task = asyncio.create_task(self._until_reached())

    async def end(self) -> None:
        """Stop trying."""
        if self._task is not None:
            self._task.cancel()
            await ended(self._task, 2.0)

    async def _until_reached(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            try:
                await self._try()
            except LogUnavailable:
                continue
            except ConfigError as error:
                _log.error("%s", error)
                pause = _LONGEST_PAUSE
                continue
            _log.info("Kafka at %s answers", self._link.settings.bootstrap_servers)
            return

    async def _reach(self) -> None:
        await greet(self._link.client)
        self._link.topics = await ensure(self._link.client, self._link.settings)

    async def _try(self) -> None:
        link = self._link
        try:
            await link.within(self._reach())
        except REFUSED as error:
            raise ConfigError(refusal(link.settings.bootstrap_servers, error)) from error
        except TimeoutError as error:
            raise LogUnavailable(f"no answer within {link.deadline:g} s") from error
        except (KafkaError, OSError) as error:
            raise LogUnavailable(str(error) or repr(error)) from error


def refusal(servers: str | None, error: Exception) -> str:
    """One line for the human who can mend it."""
    return (
        f"log.kafka.bootstrap_servers: {servers} refuses us ({error or type(error).__name__}); "
        "check log.kafka.security"
    )


async def greet(client: ClientSettings) -> None:
    """Connect to one server: aiokafka's own clients hide why they cannot.

    Raises:
        KafkaError: What the first server that answers said, else the last one's error.
        OSError: Likewise.
    """
    failed: Exception = OSError("no server is named")
    for server in client["bootstrap_servers"].split(","):
        host, _, port = server.strip().rpartition(":")
        try:
            connection = await create_conn(
                host,
                int(port),
                request_timeout_ms=5000,
                security_protocol=client["security_protocol"],
                ssl_context=client["ssl_context"],
                sasl_mechanism=client["sasl_mechanism"],
                sasl_plain_username=client["sasl_plain_username"],
                sasl_plain_password=client["sasl_plain_password"],
            )
        except REFUSED:
            raise
        except (KafkaError, OSError) as error:
            failed = error
            continue
        connection.close()
        return
    raise failed
