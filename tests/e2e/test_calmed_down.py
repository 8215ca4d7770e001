"""Keepalive pings: ours must not lose what it forwards to a backend that has enough of them, nor a sender to us."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from tests.support.asking import asked
from tests.support.sender import EXPORT, send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]
SETTINGS = bytes.fromhex("000000040000000000")
TOO_MANY = b"too_many_pings"
GOAWAY = (
    (8 + len(TOO_MANY)).to_bytes(3, "big")
    + bytes.fromhex("0700000000")
    + (0).to_bytes(4, "big")  # the last stream that was taken: none
    + (0x0B).to_bytes(4, "big")  # ENHANCE_YOUR_CALM
    + TOO_MANY
)
CALMED = 2
"""Connections that are told so; later ones are served."""


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
            writer.write(SETTINGS + GOAWAY)
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


def test_a_backend_that_wants_calm_gets_everything(tmp_path: Path) -> None:
    with Service(tmp_path / "backend", "embedder.kind=none") as backend:
        asyncio.run(forwarded(tmp_path, backend))


async def forwarded(tmp_path: Path, backend: Service) -> None:
    async with calming(int(backend.grpc.rpartition(":")[2])) as address:

        def send_some() -> None:
            forward = json.dumps({"endpoint": address})
            with Service(tmp_path / "data", "embedder.kind=none", f"forward={forward}") as service:
                send(service.grpc, *(asked(f"s{n}", "hello") for n in range(5)))
                backend.wait_for("all of them", lambda: "s4" in sessions(backend))
                assert service.get("/readyz") is not None

        await asyncio.to_thread(send_some)


def sessions(service: Service) -> set[str]:
    return {each["session_id"] for each in service.signals()}


def test_a_sender_that_pings_every_second_is_not_cut_off(tmp_path: Path) -> None:
    pings = [
        ("grpc.keepalive_time_ms", 1000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    ]
    with (
        Service(tmp_path / "data", "embedder.kind=none") as service,
        grpc.insecure_channel(service.grpc, options=pings) as channel,
    ):
        export = channel.unary_unary(EXPORT, request_serializer=bytes, response_deserializer=bytes)
        export(asked("s0", "hello"), timeout=10)
        service.wait_for("its score", lambda: "s0" in sessions(service))  # seconds without a call
        export(asked("s1", "hello"), timeout=10)
        service.wait_for("the next one", lambda: "s1" in sessions(service))
