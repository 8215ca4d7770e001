"""The live stream of the real process under load: every reader gets every signal, or learns that it does not."""

import asyncio
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.agents import request
from tests.support.asking import span
from tests.support.clocks import eventually
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

READERS, TRACES, AT_ONCE = 30, 2_000, 250
QUICK = ("windows.trace.root_grace=300ms", "windows.session.idle=1h")
ID = re.compile(rb"^id: (\S+)$", re.MULTILINE)


class Reader:
    """Follows the stream until it ends; keeps the ids of the events alone."""

    def __init__(self) -> None:
        self.ids: list[bytes] = []
        self.end = b""

    async def follow(self, url: str) -> None:
        where = urlsplit(url)
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        writer.write(b"GET /api/v1/signals/stream HTTP/1.1\r\nhost: localhost\r\n\r\n")
        kept = b""
        try:
            while piece := await reader.read(1 << 20):
                kept += piece
                whole, _, kept = kept.rpartition(b"\n")
                self.ids += ID.findall(whole)
                if b"event: end" in whole:
                    self.end = whole[whole.index(b"event: end") :]
        finally:
            writer.close()


def questions(first: int) -> bytes:
    spans = [span(f"s-{n}", f"Where is order {n}?") for n in range(first, first + AT_ONCE)]
    return request("desk-bot", spans)


async def load(service: Service) -> float:
    """Send the traces as fast as they are taken; how many signals they gave."""
    for first in range(0, TRACES, AT_ONCE):
        await asyncio.to_thread(send, service.grpc, questions(first))

    def published() -> float:
        scored = [each for each in service.signals() if each["scope"] == "session"]
        return len({each["session_id"] for each in scored}) == TRACES

    await asyncio.to_thread(service.wait_for, "all are scored", published, 200)
    return len(service.signals())


async def test_thirty_readers_get_every_signal(tmp_path: Path) -> None:
    service = Service(tmp_path / "data", *QUICK)
    await asyncio.to_thread(service.start)
    readers = [Reader() for _ in range(READERS)]
    try:
        following = [asyncio.create_task(each.follow(service.admin)) for each in readers]
        clients = lambda: service.metrics().get("spanwise_stream_clients") == READERS  # noqa: E731
        await asyncio.to_thread(service.wait_for, "all follow", clients)
        count = await load(service)
        await eventually(lambda: all(len(each.ids) >= count or each.end for each in readers))
    finally:
        await asyncio.to_thread(service.stop)
    async with asyncio.timeout(20):
        await asyncio.wait(following)

    assert [len(each.ids) for each in readers if b"slow" not in each.end] == [count] * READERS
    assert {each.end[:11] for each in readers} == {b"event: end\n"}, "the stop is sent too"
    assert all(len({*each.ids}) == len(each.ids) for each in readers)
