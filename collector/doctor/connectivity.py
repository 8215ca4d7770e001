"""`spanwise validate --connect`: whether what the configuration names answers, and fits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping

from aiokafka.admin import AIOKafkaAdminClient

from collector.base.errors import ConfigError
from collector.config.crosscheck import models_asked
from collector.config.tree import Config
from collector.doctor.deliveries import undeliverable
from collector.log.kafka.client import ClientSettings
from collector.log.kafka.cluster import LARGEST, topic_settings
from collector.log.kafka.question import ask_kafka
from collector.log.port import KAFKA_TOPICS, WINDOWS
from collector.service.sinks import switched_on
from evaluators.judging.prompt import JudgeError, Prompt, digest_of
from evaluators.providers.litellm import LiteLlmEmbedder, LiteLlmJudge

EMBEDDER = "embedder.model"
"""The path of the one model that is not a judge."""
Settings = Mapping[str, Mapping[str, str]]
_SYSTEM, _USER = "Answer with one word.", "Say ok."
QUESTION = Prompt(
    name="trial",
    system=_SYSTEM,
    user=_USER,
    schema=None,
    digest=digest_of("trial", _SYSTEM, _USER, None),
)
"""One tiny question, so that a wrong key is found before the first trace."""


def connect_all(config: Config) -> tuple[str, ...]:
    """Try everything that is configured; the sections that were tried.

    Raises:
        ConfigError: One line per thing that does not answer or does not fit.
    """
    wrong = asyncio.run(_kafka(config)) if config.log.kind == "kafka" else []
    wrong += asyncio.run(undeliverable(config))
    wrong += asyncio.run(unreachable_models(config))
    if wrong:
        raise ConfigError("\n".join(wrong))
    return tried(config)


def tried(config: Config) -> tuple[str, ...]:
    """What `connect_all` tries, as the configuration names it."""
    sections = {
        "data_dir": True,
        "log.kafka": config.log.kind == "kafka",
        **{f"sinks.{kind.name}": True for kind in switched_on(config)},
        "forward": config.forward is not None,
    }
    named = (name for name, is_tried in sections.items() if is_tried)
    return (*named, *_distinct(models_asked(config)))


async def _kafka(config: Config) -> list[str]:
    kafka = config.log.kafka
    answered = await ask_kafka(
        kafka.bootstrap_servers or "",
        kafka.security,
        lambda client: _asked(client, kafka.topic_prefix),
        section="log.kafka",
    )
    if isinstance(answered, str):
        return [answered]
    partitions, settings = answered
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
        names = sorted(
            {f"{prefix}{topic}" for topic in KAFKA_TOPICS} & set(await admin.list_topics())
        )
        described = await admin.describe_topics(names) if names else []
        partitions = {str(each["topic"]): len(each["partitions"]) for each in described}
        return partitions, await topic_settings(admin, names)
    finally:
        await admin.close()


async def unreachable_models(config: Config) -> list[str]:
    """One line per model that does not answer; what a line says is never the provider's own text."""
    wrong: list[str] = []
    for path, model in _distinct(models_asked(config)).items():
        if path == EMBEDDER:
            asked, where = _embed(config, model), config.embedder.base_url
        else:
            asked, where = _ask(config, model), config.judge.base_url
        wrong += await _refusal(path, model, where, asked)
    return wrong


def _distinct(models: Mapping[str, str]) -> dict[str, str]:
    """Each judge's model under the first setting that names it: one question is enough."""
    first: dict[tuple[str, bool], str] = {}
    for path, model in models.items():
        first.setdefault((model, path == EMBEDDER), path)
    return {path: model for (model, _), path in first.items()}


async def _refusal(
    path: str, model: str, base_url: str | None, asked: Awaitable[object]
) -> list[str]:
    try:
        await asked
    except JudgeError as error:
        where = f" at {base_url}" if base_url else ""
        section = "embedder" if path == EMBEDDER else "judge"
        keys = f"{section}.base_url and {section}.api_key"
        why = f"{error.type}: {error.message}"
        return [f"{path}: `{model}`{where} does not answer ({why}); check it, {keys}"]
    return []


async def _ask(config: Config, model: str) -> object:
    judge = config.judge
    provider = LiteLlmJudge(
        timeout=judge.timeout,
        temperature=judge.temperature,
        base_url=judge.base_url,
        api_key=None if judge.api_key is None else judge.api_key.get_secret_value(),
    )
    return await provider.ask(QUESTION, model=model)


async def _embed(config: Config, model: str) -> object:
    embedder = config.embedder
    key = embedder.api_key
    provider = LiteLlmEmbedder(
        model,
        timeout=config.judge.timeout,
        base_url=embedder.base_url,
        api_key=None if key is None else key.get_secret_value(),
    )
    return await provider.embed(["ok"])
