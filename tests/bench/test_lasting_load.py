"""Load at a fixed rate: memory is level once what is bounded is full (`make soak`)."""

import pytest

from tests.bench.memory import endless_megabytes, minutes_megabytes

pytestmark = [pytest.mark.bench, pytest.mark.slow, pytest.mark.timeout(4500)]

RATE = 600
"""Spans per second: a part of what one core scores, so that nothing waits."""


def test_memory_is_level_after_three_minutes() -> None:
    found = minutes_megabytes(10, rate=RATE)
    print("RssAnon of all processes, MiB, minute by minute:", [round(each) for each in found])

    assert found[9] / found[2] <= 1.05


def test_an_hour_of_endless_sessions_is_level_once_their_windows_are_full() -> None:
    found = endless_megabytes(60)
    print("RssAnon of the main process, MiB, minute by minute:", [round(each) for each in found])

    # A window has its 1,000 turns after 17 minutes.
    assert max(found[50:]) / max(found[20:30]) <= 1.1
