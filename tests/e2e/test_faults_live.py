"""A tool that begins to fail is named by the real process after some sessions; ordinary failures are not."""

import itertools
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agents import Turn, request, spans
from tests.support.prometheus import Prometheus
from tests.support.sender import send
from tests.support.service import ROOT, Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SETTINGS = (
    "windows.trace.root_grace=200ms",
    "windows.agent.settle=1s",
    "embedder.kind=none",
)
LABELS = 'agent="support",fault="tool_failed",{}service="shop",tool="lookup"'
PAST = 60
RULES = ROOT / "helm" / "spanwise" / "files" / "rules.yaml"
NUMBERS = itertools.count(1)


def series(name: str, period: str = "") -> str:
    """Of the tool's fault."""
    return f"spanwise_fault_{name}{{{LABELS.format(period)}}}"


def serve(service: Service, *, fails: bool) -> None:
    """One session of one turn."""
    number = next(NUMBERS)
    turn = Turn(service="shop", session=f"s-{number}", number=number, fails=fails)
    send(service.grpc, request("shop", spans(turn)))


def settled(service: Service) -> int:
    """Sessions that the agent's past holds."""
    found = service.metrics()
    name = "spanwise_drift_history_samples"
    return max((int(value) for key, value in found.items() if key.startswith(name)), default=0)


def closed(service: Service) -> int:
    """Traces that were scored."""
    name = 'spanwise_traces_closed_total{reason="root_ended",service="shop"}'
    return int(service.metrics().get(name, 0))


def raised(service: Service) -> Iterator[str]:
    """Faults and drops that are shown now."""
    for name, value in service.metrics().items():
        if name.startswith(("spanwise_fault_detected", "spanwise_drift_detected")) and value:
            yield name


def test_a_tool_that_begins_to_fail_is_named_within_15_sessions_with_its_first(
    tmp_path: Path,
) -> None:
    with Service(tmp_path / "data", *SETTINGS, "windows.agent.settle=5m") as service:
        for _ in range(PAST):
            serve(service, fails=False)
        service.wait_for("the past", lambda: closed(service) >= PAST)
        times = [time.time()]  # noqa: TID251 - log time is the machine's
        for _ in range(15):
            serve(service, fails=True)
            times.append(time.time())  # noqa: TID251
        service.wait_for("the fault", lambda: service.metrics().get(series("detected")))
        found = service.metrics()

    assert found[series("uses", 'period="since",')] <= 15
    assert found[series("uses", 'period="before",')] == PAST
    assert found[series("failures", 'period="before",')] == 0
    since = found[series("since_timestamp_seconds")]
    assert times[0] - 0.5 <= since <= times[1] + 0.5


def test_two_replicas_with_the_same_fault_are_one_alert(tmp_path: Path) -> None:
    """Each sees half of the sessions, and says so in series of its own."""
    with (
        Service(tmp_path / "one", *SETTINGS) as one,
        Service(tmp_path / "other", *SETTINGS) as other,
        Prometheus(tmp_path / "p", one.admin, RULES.read_text(), others=[other.admin]) as scraping,
    ):
        replicas = (one, other)
        for number in range(2 * PAST):
            serve(replicas[number % 2], fails=False)
        for each in replicas:
            each.wait_for("the past", lambda each=each: settled(each) >= PAST)
        for number in range(80):
            serve(replicas[number % 2], fails=True)
            time.sleep(0.1)
        for each in replicas:
            each.wait_for("the fault", lambda each=each: each.metrics().get(series("detected")))

        alerts = scraping.wait_for("the alert", lambda: scraping.alerts("AgentFault"), 120)
        of_tool = [each for each in alerts if each["labels"]["tool"] == "lookup"]
        assert len(of_tool) == len({each["labels"]["fault"] for each in of_tool}) > 0
        assert not any({"instance", "pod"} & each["labels"].keys() for each in alerts)
        assert len(scraping.query('spanwise_fault_detected{fault="tool_failed"}')) == 2


@pytest.mark.slow
def test_400_ordinary_sessions_of_which_a_fifth_fails_raise_nothing(tmp_path: Path) -> None:
    rng = random.Random(400)
    with Service(tmp_path / "data", *SETTINGS) as service:
        for _ in range(400):
            serve(service, fails=rng.random() < 0.2)
            assert [*raised(service)] == []
            time.sleep(0.05)
        service.wait_for("all have settled", lambda: settled(service) >= 400)
        assert [*raised(service)] == []
