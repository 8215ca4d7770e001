"""The real process goes on scoring when the machine's clock is set, with restarts between, and says so."""

from __future__ import annotations

import itertools
import urllib.request
from pathlib import Path

import pytest

from tests.support.dialect_spans import SpanSpec, request
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SHIFTED = Path(__file__).parents[1] / "support" / "shifted_clock"
NUMBERS = itertools.count(1)


def scored(service: Service) -> bool:
    """A new trace is closed and scored."""
    trace_id = f"{next(NUMBERS):032x}"
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}
    send(service.grpc, request(SpanSpec(id=1, attributes=attributes), trace_id=trace_id))
    service.wait_for(
        f"signals of {trace_id}",
        lambda: any(each["trace_id"] == trace_id for each in service.signals()),
        timeout=20,
    )
    return True


@pytest.mark.parametrize("ahead", [600, -7_200, 259_200])
def test_scoring_goes_on_whatever_is_done_to_the_clock(tmp_path: Path, ahead: int) -> None:
    off = tmp_path / "off"
    off.write_text(str(ahead))
    environment = {"PYTHONPATH": str(SHIFTED), "CLOCK_OFF": str(off)}
    settings = ("windows.trace.root_grace=200ms",)
    with Service(tmp_path / "data", *settings, environment=environment) as service:
        assert scored(service)
        off.write_text("0")
        assert scored(service)
        service.wait_for(
            "the warning", lambda: service.output.read_text().count("the clock was set") == 1
        )
        shown = service.metrics()["spanwise_log_time_ahead_seconds"]
        assert shown == pytest.approx(ahead, abs=2)
        with urllib.request.urlopen(f"{service.admin}/health", timeout=10) as page:
            assert "the machine&#39;s clock, which was set" in page.read().decode()

        service.kill()
        service.start()
        assert scored(service)
        shown = service.metrics()["spanwise_log_time_ahead_seconds"]
        assert shown == pytest.approx(max(0, ahead), abs=30)
        off.write_text("-3600")
        assert scored(service)
