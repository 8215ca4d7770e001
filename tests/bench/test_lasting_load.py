"""Ten minutes at a fixed rate: memory is the same at the end as in the third minute (`make soak`)."""

from __future__ import annotations

import pytest

from tests.bench.memory import minutes_megabytes

pytestmark = [pytest.mark.bench, pytest.mark.slow, pytest.mark.timeout(900)]

RATE = 600
"""Spans per second: a part of what one core scores, so that nothing waits."""


def test_memory_is_level_after_three_minutes() -> None:
    found = minutes_megabytes(10, rate=RATE)
    print("RssAnon of all processes, MiB, minute by minute:", [round(each) for each in found])

    assert found[9] / found[2] <= 1.05
