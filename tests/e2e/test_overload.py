"""Twice the load that can be scored, against the real process."""

import pytest

from tests.bench.goodput import goodput_ratio


@pytest.mark.slow
@pytest.mark.e2e
@pytest.mark.timeout(200)
def test_at_twice_the_load_seven_tenths_of_what_can_be_scored_are() -> None:
    ratio, _ = goodput_ratio()

    assert ratio >= 0.7
