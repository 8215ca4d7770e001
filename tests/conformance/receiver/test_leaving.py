"""Between the stop and the closed ports: the receiver says that it leaves, and takes what comes all the same."""

import asyncio

import grpc
import httpx

from tests.support.otlp import body, span
from tests.support.otlp_http import PROTOBUF
from tests.support.receiving import call, serving

CHECK = "/grpc.health.v1.Health/Check"
NOT_SERVING = b"\x08\x02"


async def test_it_takes_spans_while_health_says_that_it_leaves() -> None:
    async with serving(stop_delay="5m") as served, grpc.aio.insecure_channel(served.target) as one:
        at_once = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            leaving = group.create_task(served.receiver.leave(at_once))
            await asyncio.sleep(0)

            health = await call(one, b"", method=CHECK)
            taken = await call(one, body(span(1, 1)))

            assert not leaving.done()
            at_once.set()
        assert health.body == NOT_SERVING
        assert taken.code is grpc.StatusCode.OK
        assert served.log.spans() == [span(1, 1)]


async def test_answers_over_http_end_their_connections() -> None:
    async with serving(stop_delay="5m") as served, httpx.AsyncClient(verify=False) as client:
        before = await client.post(served.url, content=body(span(1, 1)), headers=PROTOBUF)
        at_once = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(served.receiver.leave(at_once))
            await asyncio.sleep(0)

            after = await client.post(served.url, content=body(span(1, 2)), headers=PROTOBUF)

            at_once.set()
        assert "connection" not in before.headers
        assert (after.status_code, after.headers["connection"]) == (200, "close")
        assert served.log.spans() == [span(1, 1), span(1, 2)]


async def test_without_a_delay_it_leaves_at_once() -> None:
    async with serving(stop_delay=None) as served, asyncio.timeout(5):
        await served.receiver.leave(asyncio.Event())
