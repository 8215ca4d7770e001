"""Readiness and lag of the real process: a worker that cannot start, then one that hangs until it is let go."""

import os
import signal
from pathlib import Path

import pytest

from tests.support.asking import asked, trace_id
from tests.support.sender import send
from tests.support.service import Service, children

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SOURCE = """
import os
import sys
import time
from pathlib import Path

if "collector.reading.worker" in sys.orig_argv:
    if not Path({up!r}).exists():
        sys.stderr.write("acme: this worker cannot start\\n")
        sys.stderr.flush()
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


def test_a_process_is_ready_with_its_first_worker_and_what_waits_for_it_shows_as_lag(
    tmp_path: Path,
) -> None:
    up, begun, go = (tmp_path / name for name in ("up", "begun", "go"))
    source = SOURCE.format(up=str(up), begun=str(begun), go=str(go))
    (tmp_path / "sitecustomize.py").write_text(source)
    with Service(
        tmp_path / "data",
        *("windows.trace.root_grace=200ms", "embedder.kind=none"),
        environment={"PYTHONPATH": str(tmp_path)},
    ) as service:

        def lag() -> float:
            """Seconds that the oldest span waits."""
            return service.total("spanwise_log_lag_seconds", 'group="assembly"')

        service.wait_for("it cannot start", lambda: "cannot start" in service.output.read_text())
        assert (service.status("/readyz"), service.status("/healthz")) == (503, 200)
        send(service.grpc, asked("one", "hello"))  # what is sent meanwhile is taken, and waits
        service.wait_for("it says so", lambda: "/readyz stays 503" in service.output.read_text())
        up.touch()
        service.wait_for("the first worker is up", lambda: service.status("/readyz") == 200)

        service.wait_for("the evaluator hangs", begun.exists)
        before = lag()
        service.wait_for("the lag grows on", lambda: lag() > before + 1.0)
        assert service.total("spanwise_log_lag_records", 'group="assembly"') >= 1
        go.touch()
        service.wait_for("it is scored", lambda: service.scored_traces() == {trace_id("one")})
        service.wait_for("no group lags", lambda: service.total("spanwise_log_lag_") == 0)

        (worker,) = children(service.pid)
        os.kill(worker, signal.SIGKILL)  # another one is started
        assert service.status("/readyz") == 200
