"""What senders hear while scoring is behind or the log is full, and that little is done for it."""

import asyncio
import time
import zlib

import grpc
import pytest

from collector.base.errors import LogFull
from collector.receiver.inflate import protobuf, sniff
from collector.receiver.overload import LEAST, Overload
from collector.records.otlp_signals import TRACES
from tests.support.otlp import body, post, span
from tests.support.receiving import export, intake, serving

FAR = 1e6
SENT = body(*[span(trace, 1, text="x" * 2000) for trace in range(1, 65)])


async def test_while_scoring_is_behind_a_part_is_asked_to_come_back_later() -> None:
    async with serving(behind=lambda: FAR) as served:
        said = [await export(served.target, SENT) for _ in range(12)]
        over_http = [await post(served.url, SENT) for _ in range(2)]

        refused = [each for each in said if each.code is grpc.StatusCode.UNAVAILABLE]
        assert len(said) - len(refused) == int(12 * LEAST)
        assert all(each.delay is not None and 5 <= each.delay <= 14 for each in refused)
        assert [each.status_code for each in over_http] == [503, 503]
        assert served.counted("requests_refused_total", transport="grpc", reason="behind") == len(
            refused
        )


async def test_after_a_full_log_a_message_is_not_even_read() -> None:
    async with serving() as served:
        served.log.write_failures = [LogFull("full")]
        first = await export(served.target, SENT)
        second = await export(served.target, b"\xff\xff")

        assert {first.code, second.code} == {grpc.StatusCode.UNAVAILABLE}
        await asyncio.sleep(0.3)
        assert (await export(served.target, SENT)).code is grpc.StatusCode.OK


@pytest.mark.parametrize("sent", [SENT, zlib.compress(SENT)])
def test_a_refused_request_costs_less_than_half(sent: bytes) -> None:
    spent: dict[bool, float] = {}
    for _ in range(5):
        for refuses in (False, True):
            used = asyncio.run(cpu(sent, refuses=refuses))
            spent[refuses] = min(used, spent.get(refuses, used))

    assert spent[True] <= 0.5 * spent[False]


async def cpu(sent: bytes, *, refuses: bool) -> float:
    overload = Overload(clock=time.monotonic, limit=30, behind=lambda: FAR if refuses else 0.0)
    room = intake(clock=time.monotonic, overload=overload)
    begin = time.thread_time()
    for _ in range(20):
        await room.take(sent, sender="", signal=TRACES, transport="grpc", decode=protobuf(sniff))
    return time.thread_time() - begin
