"""SASL over TLS to the log's Kafka, and one clear line when it refuses us."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import ClusterAuthorizationFailedError

from collector.base.clock import wall
from collector.base.errors import ConfigError, LogUnavailable
from collector.base.telemetry import Telemetry
from collector.config.tree import Config, KafkaLogConfig, LogConfig
from collector.doctor.connectivity import connect_all
from collector.log.kafka.kafka_log import KafkaLog
from collector.log.kafka.reader import KafkaReader
from collector.log.kafka.rights import WRITE, failure, missing_rights
from collector.log.port import KAFKA_TOPICS, TRACES
from collector.sinks.kafka import KafkaSink
from tests.support import certificates
from tests.support.kafka.kafka_node import KafkaNode
from tests.support.kafka.topics import allow, create_topic
from tests.support.log_steps import all_of, new
from tests.support.processes import ran

pytestmark = pytest.mark.kafka

PASSWORD = "correct-horse"


@pytest.fixture(scope="module")
def secured(
    tmp_path_factory: pytest.TempPathFactory, kafka_libs: Path
) -> Iterator[tuple[KafkaNode, Path]]:
    folder = tmp_path_factory.mktemp("tls")
    made = certificates.make(folder)
    key = folder / "server.pkcs8"
    subprocess.run(
        ["openssl", "pkcs8", "-topk8", "-nocrypt", "-in", made.server.key, "-out", key],
        check=True,
        capture_output=True,
    )
    keystore = folder / "keystore.pem"
    keystore.write_text(key.read_text() + made.server.cert.read_text())
    with KafkaNode(kafka_libs, users={"spanwise": PASSWORD}, keystore=keystore) as node:
        yield node, made.ca.cert


def settings(secured: tuple[KafkaNode, Path], password: str, **changed: object) -> KafkaLogConfig:
    node, authority = secured
    values = {
        "bootstrap_servers": node.secure,
        "partitions": 1,
        "security": {
            "protocol": "SASL_SSL",
            "sasl_mechanism": "PLAIN",
            "username": "spanwise",
            "password": password,
            "ca_file": str(authority),
        },
        **changed,
    }
    return KafkaLogConfig.model_validate(values)


def whole(kafka: KafkaLogConfig) -> Config:
    return Config(log=LogConfig(kind="kafka", kafka=kafka))


async def test_records_go_and_come_over_sasl_and_tls(secured: tuple[KafkaNode, Path]) -> None:
    await asyncio.to_thread(connect_all, whole(settings(secured, PASSWORD)))
    log = await KafkaLog.open(settings(secured, PASSWORD), clock=wall, telemetry=Telemetry())

    await log.write([new(TRACES, b"secret")])

    assert await all_of(log, TRACES) == [b"secret"]
    await log.close()


async def test_a_wrong_password_and_a_strangers_certificate_are_configuration_errors(
    secured: tuple[KafkaNode, Path], tmp_path: Path
) -> None:
    stranger = certificates.make(tmp_path).ca.cert
    wrong = settings(secured, "wrong-horse")
    with pytest.raises(ConfigError, match=r"refuses us.*log\.kafka\.security") as refused:
        await KafkaLog.open(wrong, clock=wall, telemetry=Telemetry())
    assert "wrong-horse" not in str(refused.value)

    for each in (wrong, settings((secured[0], stranger), PASSWORD)):
        with pytest.raises(ConfigError, match="refuses us"):
            await asyncio.to_thread(connect_all, whole(each))


def test_a_process_that_is_refused_ends_with_one_line(
    secured: tuple[KafkaNode, Path], tmp_path: Path
) -> None:
    node, authority = secured
    chosen = {
        "data_dir": tmp_path,
        "log.kind": "kafka",
        "log.kafka.bootstrap_servers": node.secure,
        "log.kafka.security.protocol": "SASL_SSL",
        "log.kafka.security.sasl_mechanism": "PLAIN",
        "log.kafka.security.username": "spanwise",
        "log.kafka.security.password": "wrong-horse",
        "log.kafka.security.ca_file": authority,
        "receiver.grpc.port": 0,
        "receiver.http.port": 0,
        "admin.port": 0,
        "workers": 0,
    }
    command = [sys.executable, "-m", "collector.commands.start", "run"]
    for key, value in chosen.items():
        command += ["--set", f"{key}={value}"]

    done = ran(*command)

    assert done.returncode != 0
    assert len([line for line in done.stderr.splitlines() if "refuses us" in line]) == 1
    assert len(done.stderr.splitlines()) <= 2, done.stderr
    assert "wrong-horse" not in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("topic", "shape", "complaint"),
    [
        ("spans", {"max_message_bytes": "1000"}, "takes 1000 bytes"),
        ("spans", {"message_timestamp_type": "CreateTime"}, "senders' times"),
    ],
)
async def test_validate_names_what_does_not_fit(
    kafka: str, topic: str, shape: dict[str, str], complaint: str
) -> None:
    fit = {"max_message_bytes": str(20 << 20), "message_timestamp_type": "LogAppendTime"}
    prefix = f"{abs(hash((topic, complaint)))}."
    await create_topic(kafka, f"{prefix}{topic}", partitions=2, **(fit | shape))
    await until_listed(kafka, f"{prefix}{topic}")
    kafka_settings = KafkaLogConfig(bootstrap_servers=kafka, topic_prefix=prefix)

    with pytest.raises(ConfigError, match=complaint):
        await asyncio.to_thread(connect_all, whole(kafka_settings))


async def test_unequal_partition_counts_are_a_configuration_error(kafka: str) -> None:
    await create_topic(kafka, "uneven.spans", partitions=5)
    uneven = KafkaLogConfig(bootstrap_servers=kafka, topic_prefix="uneven.", partitions=2)

    with pytest.raises(ConfigError, match=r"uneven\.spans has 5"):
        await KafkaLog.open(uneven, clock=wall, telemetry=Telemetry())


# --- rights ----------------------------------------------------------------------------------------------------------

SOME = ("Describe", "DescribeConfigs")


def limited(secured: tuple[KafkaNode, Path], prefix: str) -> KafkaLogConfig:
    return settings(secured, PASSWORD, topic_prefix=f"{prefix}.", group=prefix)


async def granted(
    node: KafkaNode, prefix: str, topics: Sequence[str], groups: Sequence[str]
) -> None:
    await allow(node.bootstrap, "spanwise", "topic", f"{prefix}.", *topics)
    await allow(node.bootstrap, "spanwise", "group", f"{prefix}.", *groups)


async def made(node: KafkaNode, prefix: str) -> None:
    """All our topics, made by the cluster's operator."""
    for topic in KAFKA_TOPICS:
        fit = {"max_message_bytes": str(20 << 20), "message_timestamp_type": "LogAppendTime"}
        await create_topic(node.bootstrap, f"{prefix}.{topic}", partitions=1, **fit)


@pytest.mark.parametrize(
    ("topics", "groups", "lacks"),
    [
        ((*SOME,), ("Read",), "Read on topics {p}.closings, "),
        ((*SOME,), ("Read",), "; Write on topics {p}.closings, "),
        ((*SOME, "Read"), ("Read",), "rights on the cluster: Write on topics {p}.closings, "),
        ((*SOME, "Read", "Write"), ("Describe",), "cluster: Read on groups {p}.api.feedback, "),
        (("Create",), ("Read",), "Read on topics {p}.closings, "),
    ],
)
async def test_validate_names_the_rights_that_are_missing(
    secured: tuple[KafkaNode, Path], topics: tuple[str, ...], groups: tuple[str, ...], lacks: str
) -> None:
    prefix = f"lacks{abs(hash((topics, groups, lacks)))}"
    await made(secured[0], prefix)
    await granted(secured[0], prefix, topics, groups)

    with pytest.raises(ConfigError) as refused:
        await asyncio.to_thread(connect_all, whole(limited(secured, prefix)))

    assert lacks.format(p=prefix) in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


async def test_the_rights_of_the_docs_are_enough(secured: tuple[KafkaNode, Path]) -> None:
    """With Create the topics need not be there."""
    await made(secured[0], "there")
    await granted(secured[0], "there", (*SOME, "Read", "Write"), ("Read",))
    await granted(secured[0], "absent", (*SOME, "Read", "Write", "Create"), ("Read",))
    await granted(secured[0], "barred", (*SOME, "Read", "Write"), ("Read",))
    await allow(secured[0].bootstrap, "another", "cluster", "kafka-cluster", "Create")

    for prefix in ("there", "absent"):
        await asyncio.to_thread(connect_all, whole(limited(secured, prefix)))
    with pytest.raises(ConfigError, match=r"Create on topics barred\.closings, "):
        await asyncio.to_thread(connect_all, whole(limited(secured, "barred")))
    with pytest.raises(ConfigError, match=r"Describe on topic barred\.\w+, or Create"):
        await KafkaLog.open(limited(secured, "barred"), clock=wall, telemetry=Telemetry())


async def polled(reader: KafkaReader) -> None:
    """aiokafka tells what it is refused at a later poll."""
    for _ in range(20):
        await reader.poll(timeout=0.5)


async def test_a_right_that_is_missing_while_it_runs_is_named(
    secured: tuple[KafkaNode, Path],
) -> None:
    await made(secured[0], "reads")
    await granted(secured[0], "reads", (*SOME, "Read"), ("Describe",))
    log = await KafkaLog.open(limited(secured, "reads"), clock=wall, telemetry=Telemetry())
    try:
        with pytest.raises(LogUnavailable, match=r"right: Write on topic reads\.traces"):
            await log.write([new(TRACES, b"x")])
        reader = log.read("scoring", TRACES)
        with pytest.raises(LogUnavailable, match=r"right: Read on group reads\.scoring"):
            await polled(reader)
    finally:
        await log.close()


async def test_a_sink_that_may_not_write_says_so(secured: tuple[KafkaNode, Path]) -> None:
    await create_topic(secured[0].bootstrap, "theirs.scores")
    await allow(secured[0].bootstrap, "spanwise", "topic", "theirs.", *SOME)
    log = settings(secured, PASSWORD)
    section = {
        "bootstrap_servers": log.bootstrap_servers,
        "topic": "theirs.scores",
        "security": log.security.model_dump(),
    }
    config = Config.model_validate({"sinks": {"kafka": section}})

    said = await KafkaSink.reachable(config)
    await allow(secured[0].bootstrap, "spanwise", "topic", "theirs.", "Write")

    assert said == (
        "sinks.kafka: the user lacks rights on the cluster: Write on topic theirs.scores"
    )
    assert await KafkaSink.reachable(config) is None


def test_for_a_producer_that_may_write_nowhere_the_error_names_the_right() -> None:
    said = failure(ClusterAuthorizationFailedError(), WRITE)

    assert said.endswith("a right: Write on our topics, or IdempotentWrite on the cluster")


async def test_an_old_broker_cannot_say_and_lacks_nothing() -> None:
    class Old:
        def get_random_node(self) -> int:
            return 1

        async def send(self, node: int, request: object) -> None:
            raise NotImplementedError

    class Admin:
        _client = Old()

    admin = cast("AIOKafkaAdminClient", Admin())
    assert await missing_rights(admin, topics=["spans"], operations=[WRITE]) == []


async def until_listed(bootstrap: str, topic: str) -> None:
    """A busy broker answers that it made a topic a moment before it tells others of it."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        while topic not in await admin.list_topics():  # noqa: ASYNC110 - nothing to wait on
            await asyncio.sleep(0.05)
    finally:
        await admin.close()
