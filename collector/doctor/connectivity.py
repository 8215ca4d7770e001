"""`spanwise validate --connect`: whether what the configuration names answers, and fits."""

import asyncio
from collections.abc import Mapping

from aiokafka.admin import AIOKafkaAdminClient

from collector.base.errors import ConfigError
from collector.base.files import unwritable
from collector.config.tree import Config
from collector.doctor.models import ask_models
from collector.log.kafka.client import ClientSettings
from collector.log.kafka.cluster import LARGEST, new_topic, topic_settings
from collector.log.kafka.question import ask_kafka
from collector.log.kafka.rights import READ, WRITE, Right, lacking, missing_rights
from collector.log.port import KAFKA_TOPICS, WINDOWS
from collector.notices.messenger import Messenger
from collector.otlp.client import reachable
from collector.otlp.signal import METRICS_SERVICE, TRACE_SERVICE
from collector.service.logs import groups
from collector.service.sinks import switched_on

# Whether what Spanwise writes and sends has somewhere to go: the data folder, every sink, the backend of `forward`.
#
# Nothing is left behind: no signal is delivered, no file stays, no notice is sent (that does `spanwise notify --test`).
# Prometheus comes to us; there is nothing to try.


async def undeliverable(config: Config) -> list[str]:
    """One line per thing that cannot be written or does not answer. Raises ConfigError: an address is not one."""
    folder = unwritable(config.data_dir)
    answers = [folder and f"data_dir: {folder}"]
    answers += [await kind.reachable(config) for kind in switched_on(config)]
    if config.forward is not None:  # logs go there too; every backend takes traces
        answers.append(await reachable(config.forward, TRACE_SERVICE, section="forward"))
    if config.metrics.otlp is not None:
        target = config.metrics.otlp
        answers.append(await reachable(target, METRICS_SERVICE, section="metrics.otlp"))
    for name, target in config.notify.to.items():
        messenger = Messenger(name, target)
        answers.append(await messenger.trial())
        await messenger.close()
    return [line for line in answers if line is not None]


Settings = Mapping[str, Mapping[str, str]]


def connect_all(config: Config) -> tuple[str, ...]:
    """Try everything that is configured; the sections that were tried.

    Raises ConfigError: one line per thing that does not answer or does not fit.
    """
    wrong = asyncio.run(_kafka(config)) if config.log.kind == "kafka" else []
    wrong += asyncio.run(undeliverable(config))
    wrong_models, right_models = asyncio.run(ask_models(config))
    wrong += wrong_models
    if wrong:
        raise ConfigError("\n".join(wrong))
    return (*_sections(config), *right_models)


def _sections(config: Config) -> tuple[str, ...]:
    sections = {
        "data_dir": True,
        "log.kafka": config.log.kind == "kafka",
        **{f"sinks.{kind.name}": True for kind in switched_on(config)},
        "metrics.otlp": config.metrics.otlp is not None,
        "forward": config.forward is not None,
        **{f"notify.to.{name}": each.alertmanager for name, each in config.notify.to.items()},
    }
    return tuple(name for name, is_tried in sections.items() if is_tried)


async def _kafka(config: Config) -> list[str]:
    kafka = config.log.kafka
    answered = await ask_kafka(
        kafka.bootstrap_servers or "",
        kafka.security,
        lambda client: _asked(client, config),
        section="log.kafka",
    )
    if isinstance(answered, str):
        return [answered]
    partitions, settings, missing = answered
    windows = f"{kafka.topic_prefix}{WINDOWS}"
    keyed = {name: count for name, count in partitions.items() if name != windows}
    wrong = [*partitions_differ(keyed), *too_small(_limits(settings)), *senders_times(settings)]
    if partitions.get(windows, 1) != 1:
        wrong.append(f"log.kafka.topic_prefix: topic {windows} must have one partition")
    if (line := lacking(missing, "log.kafka")) is not None:
        wrong.append(line)
    return wrong


def partitions_differ(partitions: dict[str, int]) -> list[str]:
    """Topics that exist must have the same number of partitions, else a session's records part ways."""
    if len(set(partitions.values())) < 2:
        return []
    counts = ", ".join(f"{topic} has {count}" for topic, count in sorted(partitions.items()))
    return [f"log.kafka.partitions: Spanwise's topics need equal partition counts, but {counts}"]


def too_small(limits: dict[str, int]) -> list[str]:
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


async def _asked(
    client: ClientSettings, config: Config
) -> tuple[dict[str, int], Settings, list[Right]]:
    kafka = config.log.kafka
    admin = AIOKafkaAdminClient(**client)
    try:
        await admin.start()
        topics = {f"{kafka.topic_prefix}{topic}": topic for topic in KAFKA_TOPICS}
        names = sorted(topics.keys() & set(await admin.list_topics()))
        described = await admin.describe_topics(names) if names else []
        partitions = {str(each["topic"]): len(each["partitions"]) for each in described}
        missing = await missing_rights(
            admin,
            topics=sorted(topics),
            operations=(READ, WRITE),
            groups=sorted(
                {f"{kafka.group}.{group}" for names in groups(config).values() for group in names}
            ),
            create=[new_topic(kafka, topic) for name, topic in topics.items() if name not in names],
        )
        return partitions, await topic_settings(admin, names), missing
    finally:
        await admin.close()
