"""Our topics in the cluster: created with their settings, or checked when they are there already."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from collector.config.tree import KafkaLogConfig
from collector.errors import ConfigError, LogUnavailable
from collector.kafka.client import ClientSettings
from collector.log.kafka.cluster import LARGEST, Topics
from collector.log.port import COMPACTED, TOPICS, WINDOWS

_EXISTS = 36
_PASSING = {7, 41}
"""Error codes: timed out, not the controller."""
_WEEK = 7 * 86_400_000
_log = logging.getLogger(__name__)


def settings_of(topic: str, replication: int) -> dict[str, str]:
    """The settings with which a topic of ours is created."""
    chosen = {
        "max.message.bytes": str(LARGEST),
        "message.timestamp.type": "LogAppendTime",
        "retention.ms": str(_WEEK),
        "cleanup.policy": "delete",
    }
    if replication > 2:
        chosen["min.insync.replicas"] = "2"
    if topic in COMPACTED:
        # Small, short segments: an active one is never compacted, and an owner reads all of it at a rebalance.
        chosen |= {
            "cleanup.policy": "compact",
            "retention.ms": "-1",
            "segment.bytes": str(64 << 20),
            "segment.ms": "3600000",
            "min.cleanable.dirty.ratio": "0.2",
            "min.compaction.lag.ms": "600000",
        }
    return chosen


async def ensure(client: ClientSettings, kafka: KafkaLogConfig) -> Topics:
    """Create what is missing, wait until all of them are there, look at them. May take for ever.

    Raises:
        ConfigError: A topic may not be created, or is there but not fit.
        LogUnavailable: The cluster is not ready to answer.
    """
    admin = AIOKafkaAdminClient(**client)
    try:
        await admin.start()
        present = set(await admin.list_topics())
        missing = [topic for topic in TOPICS if f"{kafka.topic_prefix}{topic}" not in present]
        if missing:
            await _create(admin, kafka, missing)
        while (topics := await _described(admin, kafka)) is None:  # noqa: ASYNC110 - leaders come
            await asyncio.sleep(0.1)
        return topics
    finally:
        await admin.close()


async def _create(
    admin: AIOKafkaAdminClient, kafka: KafkaLogConfig, missing: Sequence[str]
) -> None:
    news = [
        NewTopic(
            f"{kafka.topic_prefix}{topic}",
            1 if topic == WINDOWS else kafka.partitions,
            kafka.replication,
            topic_configs=settings_of(topic, kafka.replication),
        )
        for topic in missing
    ]
    answer = await admin.create_topics(news)  # raises nothing: errors stand in the answer
    for name, code, why in answer.topic_errors:
        if code in _PASSING:
            raise LogUnavailable(f"topic {name} could not be created yet: {why}")
        if code not in {0, _EXISTS}:
            raise ConfigError(
                f"log.kafka: topic {name} is missing and cannot be created (error {code}: {why}); "
                "create it or mend log.kafka.partitions, replication or the user's rights"
            )
    _log.info("Created topics %s", ", ".join(new.name for new in news))


async def _described(admin: AIOKafkaAdminClient, kafka: KafkaLogConfig) -> Topics | None:
    names = {f"{kafka.topic_prefix}{topic}": topic for topic in TOPICS}
    described = await admin.describe_topics(list(names))
    counts = {
        names[each["topic"]]: len(each["partitions"])
        for each in described
        if each["topic"] in names and _is_led(each["partitions"])
    }
    if len(counts) < len(TOPICS):
        return None
    configs = await topic_settings(admin, list(names))
    limits = {
        topic: int(configs.get(name, {}).get("max.message.bytes", LARGEST))
        for name, topic in names.items()
    }
    _check(counts, kafka.topic_prefix)
    for name in configs:
        if configs[name].get("message.timestamp.type", "LogAppendTime") != "LogAppendTime":
            _log.warning(
                "Topic %s keeps its senders' times; set message.timestamp.type=LogAppendTime, "
                "else traces close by the senders' clocks",
                name,
            )
    return Topics(partitions=counts, limits=limits)


def _is_led(partitions: Sequence[Mapping[str, int]]) -> bool:
    return bool(partitions) and all(each["leader"] >= 0 for each in partitions)


def _check(counts: Mapping[str, int], prefix: str) -> None:
    keyed = {topic: count for topic, count in counts.items() if topic != WINDOWS}
    if len(set(keyed.values())) > 1:
        each = ", ".join(f"{prefix}{topic} has {count}" for topic, count in sorted(keyed.items()))
        raise ConfigError(
            f"log.kafka.partitions: our topics need equal partition counts, but {each}"
        )
    if counts[WINDOWS] != 1:
        raise ConfigError(f"log.kafka: topic {prefix}{WINDOWS} must have one partition")


async def topic_settings(
    admin: AIOKafkaAdminClient, names: Sequence[str]
) -> dict[str, dict[str, str]]:
    """By topic, the settings that may be read."""
    asked = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    found: dict[str, dict[str, str]] = {}
    for answer in await admin.describe_configs(asked) if asked else ():
        for _error, _why, _kind, name, entries in answer.resources:
            found[name] = {entry[0]: entry[1] for entry in entries if entry[1] is not None}
    return found
