"""A backend that has enough of our keepalive pings, and ends the connection, loses nothing that we forward."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.asking import asked
from tests.support.sender import send
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
