"""A service that is sent nothing looks for everything that time brings in two wake-ups a second."""

import pytest

from tests.bench.rest import at_rest

pytestmark = pytest.mark.e2e

MOST = 5
"""Wake-ups of the event loop's thread a second: 2, and some for what its threads hand over. It was 13."""


def test_it_wakes_up_a_few_times_a_second() -> None:
    assert at_rest(seconds=5).wakeups <= MOST
