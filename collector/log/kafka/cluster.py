"""The cluster, as every part of the Kafka log uses it: settings, names, topics, how long a request may take.

The first contact, at once or in the background: connect, then create or check our topics (`Bootstrap`).
"""

import asyncio
import logging
import ssl
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.conn import create_conn
from aiokafka.errors import (
    AuthenticationFailedError,
    ClusterAuthorizationFailedError,
    KafkaError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
    UnsupportedSaslMechanismError,
)

from collector.base.clock import Clock
from collector.base.errors import ConfigError, LogUnavailable
from collector.base.retry import Backoff
from collector.base.steady_clock import SteadyClock
from collector.config.tree import KafkaLogConfig
from collector.log.families import LogFamilies
from collector.log.kafka.client import ClientSettings, ended, within
from collector.log.port import COMPACTED, KAFKA_TOPICS, LOG_REQUESTS, MAX_RECORD, WINDOWS

LARGEST = MAX_RECORD  # bytes of the largest record of our topics, Kafka's own bytes included
CLOCKS_DIFFER = 2.0  # seconds by which a broker's clock and ours may differ (docs/decisions/041)
APPEND_TIME = 1  # the type of a time that the broker gave a record: LogAppendTime
STOPPING = 3.0  # seconds that a request may take once the process stops; each one that runs out of time halves them
SHORTEST = 0.5  # the seconds are halved down to this
_LONGEST_PAUSE = 5.0  # seconds between two attempts, at most
_EXISTS = 36
_RETRYABLE = {7, 41}
"""Error codes: timed out, not the controller."""
_WEEK = 7 * 86_400_000
"""Milliseconds: Kafka's own default of `retention.ms`, said so that a broker's other default does not count."""
REFUSED = (
    AuthenticationFailedError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
    ClusterAuthorizationFailedError,
    TopicAuthorizationFailedError,
    ssl.SSLCertVerificationError,
)
_log = logging.getLogger(__name__)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """Our topics, as the cluster describes them: how many partitions, and the bytes of the largest record batch."""

    partitions: Mapping[str, int]
    limits: Mapping[str, int]


@dataclass(slots=True, kw_only=True)
class Cluster:
    """One process's view of its cluster. `topics` None: it has not been reached yet."""

    settings: KafkaLogConfig
    client: ClientSettings
    clock: Clock
    families: LogFamilies
    deadline: float  # seconds that any request may take
    owner: bytes  # names this process: tells its state records from those of a former owner
    topics: Topics | None = None
    stopping: bool = False
    _agreed: bool = field(default=False, init=False)
    """The first answer of a broker has set the clock."""

    def begin_shutdown(self) -> None:
        """The process stops: requests, those under way too, wait for a short time only."""
        self.stopping = True
        self.deadline = min(self.deadline, STOPPING)

    def heard(self, stamped: float, *, sent: float | None = None) -> None:
        """Let log time be the brokers', which stamp the records: else two clocks say when a trace is due.

        Log time goes on from the newest stamp there is; the first record that this process sends may set it back.
        `stamped`: the time that a broker gave a record when it appended it. `sent`: the clock when this process sent
        the record; None: another one may have, at any time.
        """
        clock = self.clock
        if not isinstance(clock, SteadyClock):
            return
        if sent is not None and not self._agreed:
            self._agreed = True
            if stamped < sent - CLOCKS_DIFFER:
                clock.begin_at(stamped)
        if stamped > clock() + CLOCKS_DIFFER:
            clock.go_on_from(stamped)

    async def within(self, work: Coroutine[Any, Any, _T], late: str) -> _T:
        """The result of a request, in time. Raises LogUnavailable: `late`, it was given up; it may still happen."""
        try:
            return await within(lambda: self.deadline, work)
        except TimeoutError as error:
            if self.stopping:
                self.deadline = max(SHORTEST, self.deadline / 2)
            raise LogUnavailable(late) from error

    def name(self, topic: str) -> str:
        if topic not in KAFKA_TOPICS:
            raise ValueError(f"there is no topic `{topic}`")
        return f"{self.settings.topic_prefix}{topic}"

    def group(self, group: str) -> str:
        return f"{self.settings.group}.{group}"

    def partitions(self, topic: str) -> int:
        """How many partitions the topic has; the configured number until the cluster has been reached."""
        if topic not in KAFKA_TOPICS:
            raise ValueError(f"there is no topic `{topic}`")
        if self.topics is not None:
            return self.topics.partitions[topic]
        return 1 if topic == WINDOWS else self.settings.partitions

    def reached(self) -> Topics:
        """The topics. Raises LogUnavailable: the cluster has not been reached since the start."""
        if self.topics is None:
            raise LogUnavailable(f"Kafka at {self.settings.bootstrap_servers} was not reached yet")
        return self.topics


class Bootstrap:
    """Sets `Cluster.topics` once the cluster has been reached."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Try once; go on in the background when no server answers.

        Raises ConfigError: a server answers, and the configuration or the user's rights must be corrected.
        """
        try:
            await self._try()
        except LogUnavailable as error:
            _log.warning("Kafka does not answer yet; trying again in the background: %s", error)
            self._task = asyncio.create_task(self._until_reached())

    async def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await ended(self._task, 2.0)

    async def _until_reached(self) -> None:
        backoff = Backoff(longest=_LONGEST_PAUSE)
        while True:
            await backoff.sleep()
            try:
                await self._try()
            except LogUnavailable:
                continue
            except ConfigError as error:
                _log.error("Kafka cannot be used: %s", error)
                backoff = Backoff(first=_LONGEST_PAUSE, longest=_LONGEST_PAUSE)
                continue
            except Exception:  # noqa: BLE001 - the task has no owner, and without it no topic is known
                _log.exception("Kafka could not be asked, which is tried again.")
                continue
            _log.info("Kafka answers at %s.", self._cluster.settings.bootstrap_servers)
            return

    async def _reach(self) -> None:
        await greet(self._cluster.client)
        self._cluster.topics = await ensure_topics(self._cluster.client, self._cluster.settings)

    async def _try(self) -> None:
        cluster = self._cluster
        try:
            await cluster.within(self._reach(), f"no answer within {cluster.deadline:g} s")
        except REFUSED as error:
            raise ConfigError(refusal(cluster.settings.bootstrap_servers, error)) from error
        except (KafkaError, OSError) as error:
            raise LogUnavailable(str(error) or repr(error)) from error


def refusal(servers: str | None, error: Exception, *, section: str = "log.kafka") -> str:
    """One line for the operator: which setting to correct."""
    return (
        f"{section}.bootstrap_servers: {servers} refuses us ({error or type(error).__name__}); "
        f"check {section}.security"
    )


async def greet(client: ClientSettings) -> None:
    """Connect to one server: aiokafka's own clients do not report why they cannot connect.

    Raises:
        KafkaError, OSError: the refusal of a server that answers, else the last server's error.
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


def settings_of(topic: str, replication: int) -> dict[str, str]:
    settings = {
        "max.message.bytes": str(LARGEST),
        "message.timestamp.type": "LogAppendTime",
        "retention.ms": str(_WEEK),
        "cleanup.policy": "delete",
    }
    if replication > 2:
        settings["min.insync.replicas"] = "2"
    if topic in COMPACTED:
        # Small, short segments: the active one is never compacted, and an owner reads all of it at a rebalance.
        settings |= {
            "cleanup.policy": "compact",
            "retention.ms": "-1",
            "segment.bytes": str(64 << 20),
            "segment.ms": "3600000",
            "min.cleanable.dirty.ratio": "0.2",
            "min.compaction.lag.ms": "600000",
        }
    return settings


def new_topic(kafka: KafkaLogConfig, topic: str) -> NewTopic:
    return NewTopic(
        f"{kafka.topic_prefix}{topic}",
        1 if topic == WINDOWS else kafka.partitions,
        kafka.replication,
        topic_configs=settings_of(topic, kafka.replication),
    )


async def ensure_topics(client: ClientSettings, kafka: KafkaLogConfig) -> Topics:
    """Create the topics that are missing, wait until every one has its leaders, describe them. The caller bounds it.

    Raises ConfigError: a topic may not be created, or exists with settings that do not fit. Raises LogUnavailable: the
    cluster is not ready to answer.
    """
    admin = AIOKafkaAdminClient(**client)
    try:
        await admin.start()
        present = set(await admin.list_topics())
        missing = [topic for topic in KAFKA_TOPICS if f"{kafka.topic_prefix}{topic}" not in present]
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
    new_topics = [new_topic(kafka, topic) for topic in missing]
    answer = await admin.create_topics(new_topics)  # raises nothing: the answer has the errors
    for name, code, why in answer.topic_errors:
        if code in _RETRYABLE:
            raise LogUnavailable(f"topic {name} could not be created yet: {why}")
        if code == TopicAuthorizationFailedError.errno:
            raise ConfigError(
                f"log.kafka: the user lacks rights on the cluster: Describe on topic {name}, or "
                "Create if it does not exist"
            )
        if code not in {0, _EXISTS}:
            raise ConfigError(
                f"log.kafka: topic {name} is missing and cannot be created (error {code}: {why}); "
                "create it or correct log.kafka.partitions, replication or the user's rights"
            )
    _log.info("Created the topics %s.", ", ".join(new.name for new in new_topics))


async def _described(admin: AIOKafkaAdminClient, kafka: KafkaLogConfig) -> Topics | None:
    names = {f"{kafka.topic_prefix}{topic}": topic for topic in KAFKA_TOPICS}
    described = await admin.describe_topics(list(names))
    counts = {
        names[each["topic"]]: len(each["partitions"])
        for each in described
        if each["topic"] in names and _is_led(each["partitions"])
    }
    if len(counts) < len(KAFKA_TOPICS):
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
    keyed = {
        topic: count for topic, count in counts.items() if topic not in {WINDOWS, LOG_REQUESTS}
    }
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
    """By topic, its settings, as far as this user may read them."""
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    settings: dict[str, dict[str, str]] = {}
    for answer in await admin.describe_configs(resources) if resources else ():
        for _error, _why, _kind, name, entries in answer.resources:
            settings[name] = {entry[0]: entry[1] for entry in entries if entry[1] is not None}
    return settings
