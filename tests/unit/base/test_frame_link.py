"""Frames from a socket: however it cuts them, whoever waits, and how long."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.base.child import MOST_WAITING, FrameLink
from collector.base.frames import pack_frame


class FakeTransport(asyncio.Transport):
    """Whether it is read."""

    is_read = True

    def pause_reading(self) -> None:
        assert self.is_read
        self.is_read = False

    def resume_reading(self) -> None:
        assert not self.is_read
        self.is_read = True


def link_over(transport: asyncio.Transport) -> FrameLink:
    link = FrameLink()
    link.connection_made(transport)
    return link


@given(
    payloads=st.lists(st.binary(max_size=20), max_size=8),
    cuts=st.lists(st.integers(1, 12), min_size=1),
)
def test_payloads_come_whole_however_the_socket_cuts_them(
    payloads: list[bytes], cuts: list[int]
) -> None:
    async def received() -> list[bytes]:
        link = link_over(FakeTransport())
        stream, at, turn = b"".join(map(pack_frame, payloads)), 0, 0
        got: list[bytes] = []
        while at < len(stream):
            size = cuts[turn % len(cuts)]
            link.data_received(stream[at : at + size])
            at, turn = at + size, turn + 1
            if link._payloads:
                got += await link.receive_all(1.0)
        link.eof_received()
        assert link.has_ended
        return got

    assert asyncio.run(received()) == payloads


async def test_what_came_is_taken_before_the_end_is_reported() -> None:
    link = link_over(FakeTransport())
    link.data_received(pack_frame(b"one") + pack_frame(b"two") + b"\0")
    link.connection_lost(ConnectionResetError())

    assert not link.has_ended
    assert await link.receive() == b"one"
    assert await link.receive() == b"two"
    assert link.has_ended
    for take in (link.receive(), link.receive_all(1.0)):
        with pytest.raises(EOFError):
            await take


async def test_several_payloads_wake_the_waiter_once() -> None:
    link = link_over(FakeTransport())
    waiting = asyncio.ensure_future(link.receive_all(60.0))
    await asyncio.sleep(0)
    link.data_received(pack_frame(b"one") + pack_frame(b"two"))

    assert list(await waiting) == [b"one", b"two"]


async def test_an_end_wakes_the_waiter() -> None:
    link = link_over(FakeTransport())
    waiting = asyncio.ensure_future(link.receive())
    await asyncio.sleep(0)
    link.eof_received()

    with pytest.raises(EOFError):
        await waiting


async def test_each_wait_has_its_whole_limit_though_the_timer_is_an_older_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = asyncio.get_running_loop()
    now = loop.time()
    link = link_over(FakeTransport())
    rung: list[float] = []

    def call_at(when: float, *_: object) -> asyncio.TimerHandle:
        rung.append(when)
        return asyncio.TimerHandle(when, print, (), loop)

    monkeypatch.setattr(loop, "call_at", call_at)
    monkeypatch.setattr(loop, "time", lambda: now)

    async def wait(within: float) -> asyncio.Future[Sequence[bytes]]:
        waiting = asyncio.ensure_future(link.receive_all(within))
        await asyncio.sleep(0)
        return waiting

    begin = now
    first = await wait(30.0)
    link.data_received(pack_frame(b"one"))
    await first
    now = begin + 20.0
    second = await wait(30.0)
    now = begin + 30.0
    link._rings()  # the first wait's
    await asyncio.sleep(0)
    assert not second.done()
    now = begin + 50.0
    link._rings()
    with pytest.raises(TimeoutError):
        await second
    third = await wait(30.0)
    assert rung == [begin + 30.0, begin + 50.0, begin + 80.0]
    link.data_received(pack_frame(b"two"))
    await third

    fourth = await wait(5.0)  # less than what the timer was set to
    assert rung[-1] == begin + 55.0
    fourth.cancel()
    await asyncio.wait([fourth])
    now = begin + 55.0
    link._rings()


async def test_a_limit_passes() -> None:
    link = link_over(FakeTransport())
    with pytest.raises(TimeoutError):
        await link.receive_all(0.01)
    link.data_received(pack_frame(b"late"))
    assert await link.receive() == b"late"


async def test_a_waiter_that_is_cancelled_takes_nothing() -> None:
    link = link_over(FakeTransport())
    waiting = asyncio.ensure_future(link.receive())
    await asyncio.sleep(0)
    waiting.cancel()
    link.data_received(pack_frame(b"one"))
    await asyncio.wait([waiting])

    assert await link.receive() == b"one"


async def test_a_socket_whose_payloads_nobody_takes_is_not_read_on() -> None:
    transport = FakeTransport()
    link = link_over(transport)
    half = bytes(MOST_WAITING // 2)
    link.data_received(pack_frame(half))
    link.data_received(pack_frame(half))
    assert transport.is_read
    link.data_received(pack_frame(b"one more"))
    assert not transport.is_read
    await link.receive()
    assert transport.is_read
    link.data_received(pack_frame(half) * 2)
    assert not transport.is_read
    await link.receive_all(1.0)
    assert transport.is_read
