"""Frames from a child's socket: however it cuts them, and whatever others' code writes there."""

import asyncio
import os
import socket
from contextlib import suppress

import pytest

from collector.base.child import MOST_OF_THEIRS, MOST_PRINTED, MOST_WAITING, Child
from collector.base.frames import LENGTH, pack_frame


async def connected() -> tuple[Child, socket.socket]:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    child = Child("none", b"", 1.0, is_theirs=True)
    await child._connect(ours)
    return child, theirs


async def test_payloads_come_whole_and_before_the_end_that_a_reset_is() -> None:
    child, theirs = await connected()
    child.send(b"what it never reads, so that its end is a reset")
    frames = pack_frame(b"one") + pack_frame(b"") + pack_frame(b"three") + b"\0"
    for each in frames[:7]:
        theirs.send(bytes([each]))
        await asyncio.sleep(0)
    theirs.send(frames[7:])
    theirs.close()

    assert [await child.receive() for _ in range(3)] == [b"one", b"", b"three"]
    assert not child.has_ended
    with pytest.raises(EOFError):
        await child.receive()
    assert child.has_ended
    child._writer.close()


async def test_a_wait_that_is_cancelled_takes_nothing() -> None:
    child, theirs = await connected()
    with theirs:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await child.receive()
        theirs.send(pack_frame(b"late"))

        assert await child.receive() == b"late"
    child._writer.close()


@pytest.mark.parametrize(
    ("endless", "taken"),
    [
        pytest.param(bytes(1 << 16), b"", id="frames without a payload"),
        pytest.param(b"\xff" * (1 << 16), None, id="a payload of 4 GiB"),
    ],
)
async def test_what_is_written_without_end_is_not_read_without_end(
    endless: bytes, taken: bytes | None
) -> None:
    child, theirs = await connected()
    written = 0
    with theirs:
        for _ in range(200):
            try:
                written += theirs.send(endless)
            except BlockingIOError:
                await asyncio.sleep(0)

        if taken is None:
            with pytest.raises(EOFError):
                await child.receive()
        else:
            assert await child.receive() == taken
    assert written < 4 * MOST_WAITING  # what the reader holds, and what the system does
    child._writer.close()


async def test_a_longer_payload_than_others_code_may_answer_is_none() -> None:
    child, theirs = await connected()
    with theirs:
        theirs.send(LENGTH.pack(MOST_OF_THEIRS + 1))
        with pytest.raises(EOFError):
            await child.receive()
    child._writer.close()


async def test_what_it_prints_is_passed_on_a_part_a_second_and_its_last_words_are_not_lost(
    capfd: pytest.CaptureFixture[str],
) -> None:
    child, theirs = await connected()
    child._printed, prints = os.pipe()
    os.set_blocking(child._printed, False)
    os.set_blocking(prints, False)
    with theirs:
        child._pass_on()
        for _ in range(3):
            with suppress(BlockingIOError):
                os.write(prints, b"endless" * MOST_PRINTED)
            await asyncio.sleep(0.01)
        assert MOST_PRINTED >= len(capfd.readouterr().err) > 0
        child._stop_passing_on()

    assert MOST_PRINTED >= len(capfd.readouterr().err) > 0
    with pytest.raises(BrokenPipeError):
        os.write(prints, b"more")
    os.close(prints)
    child._writer.close()
