"""What both logs of the suite are made with."""

from __future__ import annotations

import pytest

from collector.telemetry import Telemetry
from tests.support.ticking import SetClock


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()
