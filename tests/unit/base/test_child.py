"""Child processes of others' code: frames from their sockets, and evaluators that are switched off."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from collector.base.child import MOST_OF_THEIRS, MOST_PRINTED, MOST_WAITING, Child
from collector.base.frames import LENGTH, pack_frame
from collector.base.plugins import SHORTER, STRIKES, WINDOW, PluginSwitch


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
    ("written", "times", "taken"),
    [
        pytest.param(bytes(1 << 16), 200, b"", id="frames without a payload"),
        pytest.param(b"\xff" * (1 << 16), 200, None, id="a payload of 4 GiB"),
        pytest.param(LENGTH.pack(MOST_OF_THEIRS + 1), 1, None, id="longer than others may answer"),
    ],
)
async def test_what_is_written_without_end_is_not_read_without_end(
    written: bytes, times: int, taken: bytes | None
) -> None:
    child, theirs = await connected()
    sent = 0
    with theirs:
        for _ in range(times):
            try:
                sent += theirs.send(written)
            except BlockingIOError:
                await asyncio.sleep(0)

        if taken is None:
            with pytest.raises(EOFError):
                await child.receive()
        else:
            assert await child.receive() == taken
    assert sent < 4 * MOST_WAITING  # what the reader holds, and what the system does
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


NAME = "mine/broken"


class Struck(PluginSwitch):
    """At a time that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(lambda: self.now)

    def strike(self, *times: float) -> None:
        for now in times:
            self.now = now
            self.blame(NAME, subject="trace")


def test_the_third_strike_in_ten_minutes_switches_it_off_for_ten_minutes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    switch = Struck()

    switch.strike(0.0, 10.0)
    assert not switch.off
    switch.strike(20.0, 20.5, 21.0, 22.0)  # in other processes that it had, too
    assert switch.off == {NAME}
    assert caplog.text.count("is switched off for 10 min") == 1

    switch.now = 20.0 + WINDOW - 1
    assert switch.off == {NAME}
    switch.now = 20.0 + WINDOW
    assert not switch.off


@pytest.mark.parametrize(
    "strikes",
    [
        pytest.param([at * WINDOW for at in range(2 * STRIKES)], id="further apart"),
        pytest.param([0.0, 0.0, 0.0, WINDOW], id="once it is on again"),
    ],
)
def test_what_does_not_add_up_switches_nothing_off(strikes: list[float]) -> None:
    switch = Struck()
    switch.strike(*strikes)
    assert not switch.off


def test_after_a_strike_it_has_less_time_for_a_while() -> None:
    switch = Struck()
    assert switch.limit(NAME, 10.0) == 10.0
    switch.strike(0.0)
    assert switch.limit(NAME, 10.0) == 10.0 / SHORTER
    switch.now = WINDOW + 1
    assert switch.limit(NAME, 10.0) == 10.0


CHILD = """
import time
from collector.base.plugins import limit_plugins
limit_plugins()
print("limited", flush=True)
time.sleep(60)
"""
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_process_that_hangs_ends_with_a_service_that_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "limited\n"
        os.kill(parent.pid, signal.SIGKILL)
        assert parent.stdout.read() == "", "the child held the pipe's other end until it ended"


WRITER = """
import os, sys
from collector.base.frames import parent_socket
parent_socket(0).send(b"on")
os.write(int(sys.argv[2]), b"x")
"""


@pytest.mark.process
def test_a_child_can_write_to_no_file_of_its_parent(tmp_path: Path) -> None:
    """uvloop starts it with every descriptor that is not closed on exec, as that of LMDB's file is not."""
    ours, theirs = socket.socketpair()
    with ours, theirs, (tmp_path / "log").open("wb") as log:
        has = (theirs.fileno(), log.fileno())
        command = [sys.executable, "-c", WRITER, *map(str, has)]
        ended = subprocess.run(command, pass_fds=has, stderr=subprocess.PIPE, check=False)
        assert ours.recv(2) == b"on"

    assert b"Bad file descriptor" in ended.stderr
    assert (tmp_path / "log").read_bytes() == b""
