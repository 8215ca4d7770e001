"""`validate --connect` tries every sink and the backend of `forward`, and leaves nothing behind."""

import contextlib
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from collector.config.tree import Config
from collector.doctor.connectivity import undeliverable
from tests.support import otlp_server
from tests.support.kafka.topics import create_topic
from tests.support.otlp_server import Backend, grpc_backend, http_backend

LogsAt = Callable[[], contextlib.AbstractAsyncContextManager[otlp_server.LogsServer]]
Server = Callable[..., contextlib.AbstractAsyncContextManager[Backend]]
NOBODY = "http://127.0.0.1:1"


def configured(folder: Path, **sections: Any) -> Config:
    return Config.model_validate({"data_dir": folder, **sections})


@pytest.mark.parametrize(
    ("protocol", "server", "refusal", "why"),
    [
        ("grpc", otlp_server.grpc_server, "UNAUTHENTICATED", "UNAUTHENTICATED: set to"),
        ("http", otlp_server.http_server, "401", "HTTP 401: set to"),
    ],
)
async def test_an_otlp_sink(
    tmp_path: Path, protocol: str, server: LogsAt, refusal: str, why: str
) -> None:
    async with server() as logs:
        target = {"endpoint": logs.endpoint, "protocol": protocol, "headers": {"x-key": "secret"}}
        config = configured(tmp_path, sinks={"otlp": target})

        assert await undeliverable(config) == []
        assert logs.records() == []
        assert logs.headers[0]["x-key"] == "secret"

        logs.code = refusal
        (line,) = await undeliverable(config)
        assert line.startswith(
            f"sinks.otlp.endpoint: {logs.endpoint} does not take what we send ({why})"
        )
        assert line.endswith("check it, sinks.otlp.protocol and sinks.otlp.headers")
        assert "secret" not in line


@pytest.mark.parametrize(("protocol", "server"), [("grpc", grpc_backend), ("http", http_backend)])
async def test_the_backend_of_forward(tmp_path: Path, protocol: str, server: Server) -> None:
    async with server() as backend:
        there = {"endpoint": backend.endpoint, "protocol": protocol}
        assert await undeliverable(configured(tmp_path / "a" / "b", forward=there)) == []
    assert list(tmp_path.iterdir()) == [], "no data folder is made"  # noqa: ASYNC240 - a test's own

    (line,) = await undeliverable(configured(tmp_path, forward={**there, "endpoint": NOBODY}))

    assert line.startswith(f"forward.endpoint: {NOBODY} does not take what we send (")
    assert "\n" not in line


async def test_each_thing_that_is_away_has_its_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    config = configured(
        tmp_path / "file" / "data",
        sinks={
            "jsonl": {"path": tmp_path / "file" / "signals.jsonl"},
            "kafka": {"bootstrap_servers": "127.0.0.1:1"},
            "otlp": {"endpoint": NOBODY, "protocol": "http"},
        },
        forward={"endpoint": NOBODY, "protocol": "http"},
    )

    lines = await undeliverable(config)

    assert [line.partition(": ")[0] for line in lines] == [
        "data_dir",
        "sinks.jsonl.path",
        "sinks.kafka.bootstrap_servers",
        "sinks.otlp.endpoint",
        "forward.endpoint",
    ]
    assert "Not a directory" in lines[0]
    assert lines[2].endswith("check the address and sinks.kafka.security")


@pytest.mark.kafka
async def test_a_kafka_sink_whose_topic_is_missing(tmp_path: Path, kafka: str) -> None:
    topic = f"signals-{uuid.uuid4().hex[:8]}"
    config = configured(tmp_path, sinks={"kafka": {"bootstrap_servers": kafka, "topic": topic}})

    (line,) = await undeliverable(config)
    await create_topic(kafka, topic)

    assert line.startswith(f"sinks.kafka.topic: there is no topic `{topic}` at {kafka}")
    assert await undeliverable(config) == []
