from collections.abc import AsyncIterator

import pytest

from collector.config.sinks import OtlpTarget
from collector.sinks.otlp import OtlpSink
from tests.support.otlp_server import LogsServer, grpc_server, http_server
from tests.support.signals import encode, signal
from tests.support.sink_contract import SinkContract


class _Backend:
    def __init__(self, logs: LogsServer, protocol: str) -> None:
        self.logs = logs
        self.protocol = protocol

    def sink(self) -> OtlpSink:
        settings = OtlpTarget.model_validate(
            {"endpoint": self.logs.endpoint, "protocol": self.protocol}
        )
        return OtlpSink(settings, timeout=2.0)

    async def received(self) -> list[str]:
        return [
            attribute.value.string_value
            for record in self.logs.records()
            for attribute in record.attributes
            if attribute.key == "spanwise.id"
        ]

    async def break_off(self) -> None:
        self.logs.code = "UNAVAILABLE" if self.protocol == "grpc" else "503"

    async def mend(self) -> None:
        self.logs.code = "OK"

    def poison(self) -> bytes:
        self.logs.bad = "the backend chokes on this"
        return encode(signal(trace="bad", explanation=self.logs.bad))


class TestOtlpSinkOverGrpc(SinkContract):
    @pytest.fixture
    async def far_end(self) -> AsyncIterator[_Backend]:
        async with grpc_server() as logs:
            yield _Backend(logs, "grpc")


class TestOtlpSinkOverHttp(SinkContract):
    @pytest.fixture
    async def far_end(self) -> AsyncIterator[_Backend]:
        async with http_server() as logs:
            yield _Backend(logs, "http")
