"""The real process forwards what it should over outages, `kill -9`, TLS, and to a backend that wants fewer pings."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.support.asking import asked
from tests.support.certificates import make, of_another_name
from tests.support.clocks import eventually
from tests.support.otlp import body, span, spans_of
from tests.support.otlp_server import Backend, grpc_backend, http_backend
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e]


def service(folder: Path, environment: Mapping[str, str] | None = None, **forward: Any) -> Service:
    return Service(
        folder,
        f"forward={json.dumps(forward)}",
        "windows.trace.root_grace=100ms",
        workers=0,
        environment=environment,
    ).start()


def turn(number: int, *, failed: bool) -> list[Span]:
    root, child = span(number, 1), span(number, 2)
    child.parent_span_id = root.span_id
    if failed:
        root.status.code = Status.STATUS_CODE_ERROR
    return [child, root]


def arrived(backend: Backend) -> Counter[int]:
    """By trace, how many different spans of it."""
    requests = map(ExportTraceServiceRequest.FromString, backend.requests)
    spans = [each for request in requests for each in spans_of(request)]
    return Counter(trace for trace, _ in {(int.from_bytes(s.trace_id), s.span_id) for s in spans})


FAILED = {"share": 0, "others": 0, "slow": None, "new_versions": 0, "wait": "500ms"}


@pytest.mark.parametrize(("keep", "kills"), [(None, 3), (FAILED, 10)], ids=["all", "failed"])
async def test_an_outage_and_kills_lose_nothing(
    tmp_path: Path, keep: dict[str, object] | None, kills: int
) -> None:
    async with grpc_backend() as backend:
        backend.code = "UNAVAILABLE"
        sent = 0
        for _ in range(kills):
            running = service(tmp_path / "data", endpoint=backend.endpoint, keep=keep)
            for _ in range(10):
                sent += 1
                send(running.grpc, body(*turn(sent, failed=sent % 3 == 0)))
            await eventually(lambda: backend.tries > 0)
            running.kill()
        backend.code = "OK"
        running = service(tmp_path / "data", endpoint=backend.endpoint, keep=keep)
        wanted = {n: 2 for n in range(1, sent + 1) if keep is None or n % 3 == 0}  # its two spans
        try:
            await eventually(lambda: arrived(backend) == wanted)
        finally:
            running.kill()


@pytest.mark.parametrize("protocol", ["grpc", "http"])
async def test_over_tls_a_backend_of_another_name_gets_nothing_and_the_named_one_what_waited(
    tmp_path: Path, protocol: str
) -> None:
    """With a certificate authority of one's own, by the variables that docs/forwarding.md names."""
    (elsewhere := tmp_path / "elsewhere").mkdir()
    certificates, (other_ca, of_other) = make(tmp_path), of_another_name(elsewhere)
    server = grpc_backend if protocol == "grpc" else http_backend

    def starts(backend: Backend, trusted: Path) -> Service:
        ca = str(trusted)
        environment = {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": ca, "SSL_CERT_FILE": ca}
        target = {"endpoint": backend.endpoint, "protocol": protocol}
        return service(tmp_path / "data", environment, **target)

    async with server(tls=of_other) as other, server(tls=certificates.server) as named:
        running = starts(other, other_ca.cert)
        send(running.grpc, body(*turn(1, failed=False)))
        running.wait_for(
            "the log says why nothing is sent",
            lambda: re.search(
                "backend takes nothing now; .*(Hostname|hostname|IP address)",
                running.output.read_text(),
            ),
        )
        running.kill()
        assert other.tries == 0
        running = starts(named, certificates.ca.cert)
        try:
            await eventually(lambda: arrived(named) == {1: 2})
        finally:
            running.kill()


HTTP2_SETTINGS = bytes.fromhex("000000040000000000")
TOO_MANY = b"too_many_pings"
GOAWAY = (
    (8 + len(TOO_MANY)).to_bytes(3, "big")
    + bytes.fromhex("0700000000")
    + (0).to_bytes(4, "big")  # the last stream that was taken: none
    + (0x0B).to_bytes(4, "big")  # ENHANCE_YOUR_CALM
    + TOO_MANY
)
CALMED = 2
"""Connections that are refused so; later ones are served."""


@asynccontextmanager
async def calming(port: int) -> AsyncGenerator[str]:
    """In front of a backend on this port; the address."""
    calmed = 0

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calmed
        if calmed < CALMED:
            calmed += 1
            await reader.read(1 << 16)
            writer.write(HTTP2_SETTINGS + GOAWAY)
            writer.close()
            return
        theirs, ours = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.TaskGroup() as both:
            both.create_task(pipe(reader, ours))
            both.create_task(pipe(theirs, writer))

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        assert calmed == CALMED
        server.close()


async def test_a_backend_that_wants_calm_gets_everything(tmp_path: Path) -> None:
    with Service(tmp_path / "backend", "embedder.kind=none") as backend:
        async with calming(int(backend.grpc.rpartition(":")[2])) as address:
            forward = json.dumps({"endpoint": address})

            def sessions() -> set[str]:
                return {each["session_id"] for each in backend.signals()}

            def send_some() -> None:
                settings = ("embedder.kind=none", f"forward={forward}")
                with Service(tmp_path / "data", *settings) as service:
                    send(service.grpc, *(asked(f"s{n}", "hello") for n in range(5)))
                    backend.wait_for("all of them", lambda: "s4" in sessions())
                    assert service.get("/readyz") is not None

            await asyncio.to_thread(send_some)
