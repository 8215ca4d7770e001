"""One question to a Kafka cluster, answered in time or explained in one line."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from aiokafka.errors import KafkaError

from collector.config.sinks import KafkaSecurity
from collector.log.kafka.client import ClientSettings, client_settings
from collector.log.kafka.cluster import REFUSED, greet, refusal

PATIENCE = 10.0  # seconds for the whole of it
_T = TypeVar("_T")


async def ask_kafka(
    servers: str,
    security: KafkaSecurity,
    question: Callable[[ClientSettings], Awaitable[_T]],
    *,
    section: str,
) -> _T | str:
    """The answer; else a line that names the settings of `section` to check.

    Raises ConfigError: a server is not host:port, or a certificate cannot be read.
    """
    # The client's own log lines would be beside our one line.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    client = client_settings(servers, security, section=section)
    try:
        async with asyncio.timeout(PATIENCE):
            await greet(client)
            return await question(client)
    except REFUSED as error:
        # A connection that failed in its handshake closes in the loop's next turns.
        await asyncio.sleep(0.01)
        return refusal(servers, error, section=section)
    except (TimeoutError, OSError, KafkaError) as error:
        why = str(error) or "no answer in time"
        return (
            f"{section}.bootstrap_servers: {servers} does not answer ({why}); "
            f"check the address and {section}.security"
        )
