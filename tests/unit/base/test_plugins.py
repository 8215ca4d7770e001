"""When an evaluator of a third party is switched off, and when it is tried again."""

import os
import signal
import subprocess
import sys

import pytest

from collector.base.plugins import SHORTER, STRIKES, WINDOW, PluginSwitch

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


def test_strikes_further_apart_do_not_add_up() -> None:
    switch = Struck()

    for at in range(2 * STRIKES):
        switch.strike(at * WINDOW)
        assert not switch.off


def test_it_begins_anew_once_it_is_on_again() -> None:
    switch = Struck()

    switch.strike(0.0, 0.0, 0.0, WINDOW)

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
