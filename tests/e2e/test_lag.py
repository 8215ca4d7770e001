"""Lag and readiness of the real process: traces that no room scores, a worker that cannot start, one that hangs."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from collector.slo.rules import rules
from tests.support.asking import asked, trace_id
from tests.support.promtool import Scenario, run, write_case
from tests.support.sender import send
from tests.support.service import Service, children

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SOURCE = """
import sys
import time
from pathlib import Path

if "collector.reading.worker" in sys.orig_argv:
    if not Path({up!r}).exists():
        sys.stderr.write("acme: this worker cannot start\\n")
        sys.stderr.flush()
        import os

        os._exit(1)
    from collector.reading.trace_scoring import TraceScoring

    scored = TraceScoring.outcomes

    def waits(self, trace):
        Path({begun!r}).touch()
        while not Path({go!r}).exists():
            time.sleep(0.05)
        return scored(self, trace)

    TraceScoring.outcomes = waits
"""
"""A `sitecustomize`: a worker that cannot start, or hangs until it is let go."""
SETTINGS = ("windows.trace.root_grace=200ms", "embedder.kind=none")
READING, SCORING = ("assembly", "spans"), ("scoring", "traces")
SECONDS = 1.5
"""Of lag that a test waits for: what 600 s would be to the alert."""


def lag(service: Service, group: str, topic: str) -> tuple[float, float] | None:
    """Records and seconds; None: the process does not say."""
    labels = f'{{group="{group}",topic="{topic}"}}'
    metrics = service.metrics()
    records = metrics.get(f"spanwise_log_lag_records{labels}")
    seconds = metrics.get(f"spanwise_log_lag_seconds{labels}")
    return None if records is None or seconds is None else (records, seconds)


def seconds(service: Service, group: str, topic: str) -> float:
    return (lag(service, group, topic) or (0.0, 0.0))[1]


def is_old(service: Service, group: tuple[str, str], age: float = SECONDS) -> bool:
    """Whether records wait for the group, the oldest for so long."""
    return seconds(service, *group) > age and (lag(service, *group) or (0, 0))[0] >= 1


def shown(service: Service) -> dict[str, float]:
    """The series of ages, as they are scraped."""
    metrics = service.metrics().items()
    return {name: value for name, value in metrics if name.startswith("spanwise_log_lag_seconds{")}


def minutes(ages: Mapping[str, float]) -> dict[str, str]:
    """The same half an hour long, if nothing changes: what waits grows older."""
    return {name: f"{age:g}+60x30" if age else "0x30" for name, age in ages.items()}


def test_unscored_traces_show_as_lag_until_they_are_scored(tmp_path: Path) -> None:
    up, begun, go = (tmp_path / name for name in ("up", "begun", "go"))
    installed = tmp_path / "installed"
    installed.mkdir()
    source = SOURCE.format(up=str(up), begun=str(begun), go=str(go))
    (installed / "sitecustomize.py").write_text(source)
    environment = {"PYTHONPATH": str(installed)}
    data = tmp_path / "data"

    up.touch()
    go.touch()
    roles = "roles=[receive,assemble]"
    with Service(data, *SETTINGS, roles, environment=environment) as service:
        send(service.grpc, asked("one", "hello"), asked("two", "hello"))
        service.wait_for("no room scores: the lag grows", lambda: is_old(service, SCORING))
        assert lag(service, *READING) == (0, 0)
        assert (lag(service, "sink.prometheus.traces", "traces") or (0, 0))[0] >= 2

    for each in (up, go, begun):
        each.unlink()
    with Service(data, *SETTINGS, environment=environment) as service:
        service.wait_for(
            "a worker has failed", lambda: b"cannot start" in service.output.read_bytes()
        )
        assert (service.status("/readyz"), service.status("/healthz")) == (503, 200)
        send(service.grpc, asked("three", "hello"))  # what is sent meanwhile is taken, and waits
        service.wait_for(
            "the log says so", lambda: b"/readyz stays 503" in service.output.read_bytes()
        )
        up.touch()
        service.wait_for("the first worker is up", lambda: service.status("/readyz") == 200)

        service.wait_for("the evaluator hangs", begun.exists)
        before = seconds(service, *READING)
        service.wait_for("the lag grows on", lambda: is_old(service, READING, before + 1.0))
        assert lag(service, *SCORING) == (0, 0), "what was read before is scored"
        hanging = shown(service)
        go.touch()
        scored = {trace_id(each) for each in ("one", "two", "three")}
        service.wait_for(
            "every trace is scored",
            lambda: scored <= {each["trace_id"] for each in service.signals()},
        )
        service.wait_for("the lag falls to nothing", lambda: lag(service, *READING) == (0, 0))
        service.wait_for(
            "no other group lags either",
            lambda: (
                {value for name, value in service.metrics().items() if "_log_lag_" in name} == {0.0}
            ),
        )
        settled = shown(service)

        (worker,) = children(service.pid)
        os.kill(worker, signal.SIGKILL)  # another one is started
        assert service.status("/readyz") == 200

    assert len(settled) >= 7
    stale = {"AgentScoresStale": [{"severity": "page"}]}
    scenarios = [
        Scenario(name="it hangs", series=minutes(hanging), fires={"9m": {}, "20m": stale}),
        Scenario(name="it scores", series=minutes(settled), fires={"20m": {}}),
    ]
    done = run("test", "rules", write_case(tmp_path, "lag", rules(), scenarios), folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
