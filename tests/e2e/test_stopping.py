"""SIGTERM: a durable log keeps what is open, a memory log and `drain_on_stop` hand it over; always within seconds."""

import signal
from pathlib import Path

import pytest

from tests.support.agents import request
from tests.support.asking import asked, span, trace_id
from tests.support.sender import Sender, send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

SECONDS = 25.0
"""Less than what Kubernetes gives a process to end."""
LONG = "windows.trace.root_grace=10m"


def closings(service: Service) -> dict[str, set[str]]:
    """Trace id -> why it closed, of all traces with signals."""
    found: dict[str, set[str]] = {}
    for each in service.signals():
        if each["scope"] == "trace":
            found.setdefault(each["trace_id"], set()).add(each["closed"])
    return found


def test_open_traces_wait_in_the_log_and_are_scored_after_the_next_start(tmp_path: Path) -> None:
    service = Service(tmp_path / "data", LONG).start()
    send(service.grpc, asked("waits", "Where is my order?"))

    code = service.stop(SECONDS)

    assert code == 0
    assert closings(service) == {}
    with Service(tmp_path / "data", "windows.trace.root_grace=1s") as again:
        again.wait_for("the trace is scored", lambda: closings(again))
        assert closings(again) == {trace_id("waits"): {"root_ended"}}


@pytest.mark.parametrize(
    ("setting", "by"),
    [
        ("log.kind=memory", signal.SIGTERM),
        ("drain_on_stop=true", signal.SIGTERM),
        ("drain_on_stop=true", signal.SIGHUP),
    ],
)
def test_what_will_not_come_back_scores_open_traces_before_it_ends(
    tmp_path: Path, setting: str, by: signal.Signals
) -> None:
    service = Service(tmp_path / "data", LONG, setting).start()
    rootless = request("desk-bot", [span("open", "", number=1, child="lookup")])
    send(service.grpc, asked("open", "Where is my order?"), rootless)

    code = service.stop(SECONDS, by)

    assert code == 0
    assert closings(service) == {
        trace_id("open", 0): {"root_ended"},  # its root was there: only the grace was cut short
        trace_id("open", 1): {"shutdown"},
    }
    final = [each for each in service.signals() if each["scope"] == "session" and each["final"]]
    assert "open" in {each["session_id"] for each in final}
    assert {"agent_reliability", "work_baseline"} <= {each["evaluator"] for each in final}


def test_it_stops_at_once_while_senders_go_on(tmp_path: Path) -> None:
    service = Service(tmp_path / "data", LONG).start()
    sender = Sender([asked(f"s{n}", "Where?") for n in range(100_000)], lambda: service.grpc)
    sender.start()
    service.wait_for("it takes some", lambda: sender.acknowledged > 10)

    code = service.stop(SECONDS)
    sender.give_up.set()
    sender.join(30)

    assert code == 0
    assert not sender.is_alive()
    assert "Traceback" not in service.output.read_text()
