"""`spanwise validate --connect`: does what the configuration names answer, and is it fit for us?"""

from __future__ import annotations

import asyncio
import logging
from importlib import import_module
from typing import Any

from collector.config import Config, KafkaSecurity
from collector.errors import ConfigError
from collector.log import TOPICS

PATIENCE = 10.0
"""Seconds for the whole of Kafka."""
LARGEST = 20 << 20
"""Bytes that a topic must take in one message."""


def connect(config: Config) -> None:
    """Try everything that is configured.

    Raises:
        ConfigError: One line per thing that does not answer or does not fit.
    """
    wrong = asyncio.run(_kafka(config)) if config.log.kind == "kafka" else []
    if wrong:
        raise ConfigError("\n".join(wrong))


async def _kafka(config: Config) -> list[str]:
    # The client's own complaints would stand beside our one line.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    try:
        async with asyncio.timeout(PATIENCE):
            topics, limits = await _asked(config)
    except (TimeoutError, OSError, _kafka_error()) as error:
        why = str(error) or "no answer in time"
        servers = f"log.kafka.bootstrap_servers: {config.log.kafka.bootstrap_servers}"
        return [f"{servers} does not answer ({why}); check the address and log.kafka.security"]
    return [*partitions_differ(topics), *too_small(limits)]


def partitions_differ(partitions: dict[str, int]) -> list[str]:
    """Topics that exist must have the same number of partitions, else a session's records part ways."""
    if len(set(partitions.values())) < 2:
        return []
    counts = ", ".join(f"{topic} has {count}" for topic, count in sorted(partitions.items()))
    return [f"log.kafka.partitions: Spanwise's topics need equal partition counts, but {counts}"]


def too_small(limits: dict[str, int]) -> list[str]:
    """Topics that would refuse a long trace."""
    return [
        f"log.kafka.topic_prefix: topic {topic} takes {limit} bytes a message; "
        f"set its max.message.bytes to {LARGEST}"
        for topic, limit in sorted(limits.items())
        if limit < LARGEST
    ]


async def _asked(config: Config) -> tuple[dict[str, int], dict[str, int]]:
    """Partition counts and message limits of our topics that exist already."""
    admin_module: Any = import_module("aiokafka.admin")
    kafka = config.log.kafka
    admin = admin_module.AIOKafkaAdminClient(
        bootstrap_servers=kafka.bootstrap_servers, **_secured(kafka.security)
    )
    await admin.start()
    try:
        ours = {f"{kafka.topic_prefix}{topic}" for topic in TOPICS}
        names = sorted(ours & set(await admin.list_topics()))
        described: list[Any] = await admin.describe_topics(names) if names else []
        resource = admin_module.config_resource
        asked = [resource.ConfigResource(resource.ConfigResourceType.TOPIC, name) for name in names]
        answers: list[Any] = await admin.describe_configs(asked) if asked else []
    finally:
        await admin.close()
    partitions = {str(each["topic"]): len(each["partitions"]) for each in described}
    return partitions, _limits(answers)


def _limits(answers: list[Any]) -> dict[str, int]:
    limits: dict[str, int] = {}
    for answer in answers:
        for resource in answer.resources:
            name, entries = str(resource[3]), resource[4]
            for entry in entries:
                if entry[0] == "max.message.bytes":
                    limits[name] = int(entry[1])
    return limits


def _secured(security: KafkaSecurity) -> dict[str, Any]:
    secured: dict[str, Any] = {"security_protocol": security.protocol}
    if security.protocol.endswith("SSL"):
        helpers: Any = import_module("aiokafka.helpers")
        secured["ssl_context"] = helpers.create_ssl_context(
            cafile=security.ca_file, certfile=security.cert_file, keyfile=security.key_file
        )
    if security.protocol.startswith("SASL") and security.password is not None:
        secured |= {
            "sasl_mechanism": security.sasl_mechanism,
            "sasl_plain_username": security.username,
            "sasl_plain_password": security.password.get_secret_value(),
        }
    return secured


def _kafka_error() -> type[Exception]:
    errors: Any = import_module("aiokafka.errors")
    return errors.KafkaError
