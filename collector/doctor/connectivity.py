"""`spanwise validate --connect`: does what the configuration names answer, and is it fit for us?"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from collector.config.tree import Config
from collector.doctor.judge_models import models_refuse
from collector.errors import ConfigError
from collector.kafka.client import ClientSettings, client_settings
from collector.log.kafka.bootstrap import REFUSED, greet, refusal, topic_settings
from collector.log.kafka.cluster import LARGEST
from collector.log.port import TOPICS, WINDOWS

PATIENCE = 10.0
"""Seconds for the whole of Kafka."""
Settings = Mapping[str, Mapping[str, str]]


def connect(config: Config) -> None:
    """Try everything that is configured.

    Raises:
        ConfigError: One line per thing that does not answer or does not fit.
    """
    wrong = asyncio.run(_kafka(config)) if config.log.kind == "kafka" else []
    wrong += asyncio.run(models_refuse(config))
    if wrong:
        raise ConfigError("\n".join(wrong))


async def _kafka(config: Config) -> list[str]:
    # The client's own complaints would stand beside our one line.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    kafka = config.log.kafka
    client = client_settings(kafka.bootstrap_servers or "", kafka.security, section="log.kafka")
    try:
        async with asyncio.timeout(PATIENCE):
            await greet(client)
            partitions, settings = await _asked(client, kafka.topic_prefix)
    except REFUSED as error:
        await asyncio.sleep(
            0.01
        )  # a connection that failed in its handshake closes in the loop's next turns
        return [refusal(kafka.bootstrap_servers, error)]
    except (TimeoutError, OSError, KafkaError) as error:
        why = str(error) or "no answer in time"
        servers = f"log.kafka.bootstrap_servers: {kafka.bootstrap_servers}"
        return [f"{servers} does not answer ({why}); check the address and log.kafka.security"]
    windows = f"{kafka.topic_prefix}{WINDOWS}"
    keyed = {name: count for name, count in partitions.items() if name != windows}
    wrong = [*partitions_differ(keyed), *too_small(_limits(settings)), *senders_times(settings)]
    if partitions.get(windows, 1) != 1:
        wrong.append(f"log.kafka.topic_prefix: topic {windows} must have one partition")
    return wrong


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


def senders_times(settings: Settings) -> list[str]:
    """Topics whose records bear their senders' clocks: a trace would close by a clock that is wrong."""
    return [
        f"log.kafka.topic_prefix: topic {topic} keeps its senders' times; "
        "set its message.timestamp.type to LogAppendTime"
        for topic, chosen in sorted(settings.items())
        if chosen.get("message.timestamp.type", "LogAppendTime") != "LogAppendTime"
    ]


def _limits(settings: Settings) -> dict[str, int]:
    key = "max.message.bytes"
    return {topic: int(chosen[key]) for topic, chosen in settings.items() if key in chosen}


async def _asked(client: ClientSettings, prefix: str) -> tuple[dict[str, int], Settings]:
    """Partition counts and settings of our topics that exist already."""
    admin = AIOKafkaAdminClient(**client)
    try:
        await admin.start()
        names = sorted({f"{prefix}{topic}" for topic in TOPICS} & set(await admin.list_topics()))
        described = await admin.describe_topics(names) if names else []
        partitions = {str(each["topic"]): len(each["partitions"]) for each in described}
        return partitions, await topic_settings(admin, names)
    finally:
        await admin.close()
