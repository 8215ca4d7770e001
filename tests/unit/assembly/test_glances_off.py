"""Open traces are looked at for `runaway` alone: without it nothing is read of them."""

import pytest

from collector.base.clock import wall
from collector.base.telemetry import Telemetry
from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.service.rooms import Rooms
from tests.support.faulty_log import FaultyLog
from tests.support.reading import ReadingWorkers


@pytest.mark.parametrize(("enabled", "glance"), [(True, 30.0), (False, None)])
def test_without_the_evaluator_no_open_trace_is_looked_at(
    enabled: bool, glance: float | None
) -> None:
    config = Config.model_validate({"evaluators": {"runaway": {"enabled": enabled}}})
    rooms = Rooms(
        config,
        plan_from(config),
        log=FaultyLog(),
        workers=ReadingWorkers(),
        telemetry=Telemetry(),
        clock=wall,
    )

    assert rooms.assembler()._windows.trace.glance == glance
