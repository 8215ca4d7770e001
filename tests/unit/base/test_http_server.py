"""uvicorn as a guest of a running loop."""

import asyncio

import pytest
from starlette.applications import Starlette

from collector.base.bounded_protocol import Limits
from collector.base.http_server import GuestServer


async def test_it_waits_for_its_stop_without_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    """uvicorn's own loop sleeps a tenth of a second before it sees that it should end."""
    server = GuestServer(Starlette(), limits=Limits(), closed=lambda _: None)
    looks: list[int] = []
    on_tick = server.on_tick

    async def looked(counter: int) -> bool:
        looks.append(counter)
        return await on_tick(counter)

    monkeypatch.setattr(server, "on_tick", looked)
    serving = asyncio.create_task(server.main_loop())
    await asyncio.sleep(0)
    server.stop(1)
    for _ in range(5):
        await asyncio.sleep(0)

    assert serving.done()
    assert looks == [0, 0]
    assert dict(server.server_state.default_headers)[b"date"].endswith(b" GMT")
