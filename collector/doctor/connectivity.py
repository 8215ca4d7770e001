"""`spanwise validate --connect`: whether what the configuration names answers, and fits."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from aiokafka.admin import AIOKafkaAdminClient

from collector.base.errors import ConfigError
from collector.base.files import unwritable
from collector.base.retry import Backoff, Sleep
from collector.config.crosscheck import models_asked
from collector.config.tree import Config
from collector.judging.judge_client import FIRST_PAUSE, LONGEST_PAUSE
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
from evaluators.judging.answer_schema import object_schema
from evaluators.judging.answers import read_object
from evaluators.judging.prompt import JudgeError, Prompt, digest_of
from evaluators.providers.litellm import LiteLlmEmbedder, LiteLlmJudge

# `spanwise validate --connect`: one small question to each model, asked as the judge asks.

EMBEDDER = "embedder.model"  # the path of the one model that is not a judge
_SYSTEM = 'Answer with one JSON object and nothing else: {"ok": true}.'
_USER = "Does this question reach you?"
_SCHEMA = object_schema({"ok": {"type": "boolean"}})
QUESTION = Prompt(
    name="trial",
    system=_SYSTEM,
    user=_USER,
    schema=_SCHEMA,
    digest=digest_of("trial", _SYSTEM, _USER, _SCHEMA),
    read=read_object,
)
"""It has all that a judge's question has, so that what a model refuses is found before the first trace."""


async def ask_models(
    config: Config, sleep: Sleep = asyncio.sleep
) -> tuple[list[str], tuple[str, ...]]:
    """One line per model that does not answer, without the provider's own text; and the models that do, by setting."""
    wrong: list[str] = []
    right: list[str] = []
    judge = _judge(config)
    for path, model in _distinct(models_asked(config)).items():
        is_embedder = path == EMBEDDER
        try:
            await _with_retries(_question(config, judge, path, model), config, sleep)
        except JudgeError as error:
            where = (config.embedder if is_embedder else config.judge).base_url
            wrong.append(_refusal(path, model, where, error))
        else:
            learned = [] if is_embedder else judge.learned(model)
            right.append(f"{path} (asked {', '.join(learned)})" if learned else path)
    return wrong, tuple(right)


def _distinct(models: Mapping[str, str]) -> dict[str, str]:
    """Each judge's model under the first setting that names it: one question is enough."""
    first: dict[tuple[str, bool], str] = {}
    for path, model in models.items():
        first.setdefault((model, path == EMBEDDER), path)
    return {path: model for (model, _), path in first.items()}


def _question(
    config: Config, judge: LiteLlmJudge, path: str, model: str
) -> Callable[[bool], Awaitable[object]]:
    if path != EMBEDDER:
        return lambda is_last: judge.ask(QUESTION, model=model, is_last=is_last)
    embedder = _embedder(config, model)
    return lambda _: embedder.embed(["ok"])


async def _with_retries(
    ask: Callable[[bool], Awaitable[object]], config: Config, sleep: Sleep
) -> None:
    backoff = Backoff(first=FIRST_PAUSE, longest=LONGEST_PAUSE)
    for attempt in range(1, config.judge.attempts + 1):
        is_last = attempt == config.judge.attempts
        try:
            await ask(is_last)
        except JudgeError as error:
            if is_last or not error.passing:
                raise
            pause = max(backoff.next(), min(error.retry_after or 0.0, LONGEST_PAUSE))
        else:
            return
        await sleep(pause)


def _refusal(path: str, model: str, base_url: str | None, error: JudgeError) -> str:
    where = f" at {base_url}" if base_url else ""
    section = "embedder" if path == EMBEDDER else "judge"
    hint = error.hint.format(section) if error.hint else f"check it, {section}.base_url"
    why = f"{error.type}: {error.message}"
    return f"{path}: `{model}`{where} does not answer ({why}); {hint}"


def _judge(config: Config) -> LiteLlmJudge:
    judge = config.judge
    return LiteLlmJudge(
        timeout=judge.timeout,
        temperature=judge.temperature,
        max_tokens=judge.max_tokens,
        base_url=judge.base_url,
        api_key=None if judge.api_key is None else judge.api_key.get_secret_value(),
    )


def _embedder(config: Config, model: str) -> LiteLlmEmbedder:
    key = config.embedder.api_key
    return LiteLlmEmbedder(
        model,
        timeout=config.judge.timeout,
        base_url=config.embedder.base_url,
        api_key=None if key is None else key.get_secret_value(),
    )


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
