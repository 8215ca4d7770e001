"""Whether what Spanwise writes and sends has somewhere to go: the data folder, every sink, the backend of `forward`.

Nothing is left behind: no signal is delivered, no file stays. Prometheus comes to us; there is nothing to try.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from aiokafka.admin import AIOKafkaAdminClient
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import ResourceLogs

from collector.base.errors import Permanent, Retryable
from collector.config.tree import Config, KafkaSinkConfig, OtlpTarget
from collector.doctor.kafka_question import ask_kafka
from collector.log.kafka.client import ClientSettings
from collector.otlp.client import GrpcTransport, HttpTransport
from collector.otlp.signal import LOGS_SERVICE, TRACE_SERVICE, OtlpService

TIMEOUT = 5.0
"""Seconds of a request."""
EMPTY = ExportLogsServiceRequest(resource_logs=[ResourceLogs()]).SerializeToString()
"""A request of one resource without a record, which every backend takes; one of traces is the same bytes."""


async def undeliverable(config: Config) -> list[str]:
    """One line per thing that cannot be written or does not answer.

    Raises:
        ConfigError: an address is not one.
    """
    sinks, wrong = config.sinks, list(unwritable(config))
    if sinks.kafka is not None:
        wrong += await _kafka(sinks.kafka)
    if sinks.otlp is not None:
        wrong += await _otlp(sinks.otlp, LOGS_SERVICE, "sinks.otlp")
    if config.forward is not None:  # logs go there too; every backend takes traces
        wrong += await _otlp(config.forward, TRACE_SERVICE, "forward")
    return wrong


# --- files -----------------------------------------------------------------------------------------------------------


def unwritable(config: Config) -> Iterator[str]:
    """The data folder, and the folder of the JSONL sink where it is another one."""
    folders = {"data_dir": config.data_dir}
    if config.sinks.jsonl is not None and config.sinks.jsonl.path is not None:
        folders["sinks.jsonl.path"] = config.sinks.jsonl.path.parent
    for key, folder in folders.items():
        if why := _refused(folder):
            yield f"{key}: nothing can be written in {folder} ({why})"


def _refused(folder: Path) -> str | None:
    """Why no file can be made in it, or in the nearest folder above it that exists."""
    nearest = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            return None
    except OSError as error:
        return error.strerror or type(error).__name__


# --- Kafka -----------------------------------------------------------------------------------------------------------


async def _kafka(settings: KafkaSinkConfig) -> list[str]:
    servers = settings.bootstrap_servers
    topics = await ask_kafka(servers, settings.security, _topics, section="sinks.kafka")
    if isinstance(topics, str):
        return [topics]
    if settings.topic in topics:
        return []
    return [
        f"sinks.kafka.topic: there is no topic `{settings.topic}` at {servers} that we may read; create it"
    ]


async def _topics(client: ClientSettings) -> frozenset[str]:
    admin = AIOKafkaAdminClient(**client)
    try:
        await admin.start()
        return frozenset(await admin.list_topics())
    finally:
        await admin.close()


# --- OTLP ------------------------------------------------------------------------------------------------------------


async def _otlp(settings: OtlpTarget, service: OtlpService, section: str) -> list[str]:
    kind = GrpcTransport if settings.protocol == "grpc" else HttpTransport
    headers = {key: value.get_secret_value() for key, value in settings.headers.items()}
    endpoint = settings.endpoint.rstrip("/").removesuffix(TRACE_SERVICE.path)
    transport = kind(endpoint, headers, service=service, key=f"{section}.endpoint", timeout=TIMEOUT)
    try:
        await transport.export(EMPTY)
    except (Retryable, Permanent) as error:
        checks = f"check it, {section}.protocol and {section}.headers"
        why = " ".join(str(error).split())
        return [
            f"{section}.endpoint: {settings.endpoint} does not take what we send ({why}); {checks}"
        ]
    finally:
        await transport.close()
    return []
