"""The first five minutes: the README's commands, its small agent, no network, a signal, a gauge."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import ran
from tests.support.service import ROOT, Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

NOWHERE = "http://127.0.0.1:9"
NO_NETWORK = {
    **dict.fromkeys(
        ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"), NOWHERE
    ),
    "NO_PROXY": "127.0.0.1",
    "no_proxy": "127.0.0.1",
}
RELIABILITY = "spanwise_agent_reliability_ratio"


def test_the_example_gives_a_signal_and_the_gauge_within_15_seconds(tmp_path: Path) -> None:
    """On default settings, and with every way to the internet closed: the embedder's model comes with its package."""
    with Service(tmp_path / "data", environment=NO_NETWORK) as service:
        target = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{service.grpc}"}
        subprocess.run(
            [sys.executable, ROOT / "examples" / "agent.py"],
            env={**os.environ, **NO_NETWORK, **target},
            check=True,
            timeout=120,
        )

        # Counted from the last span: how long an interpreter takes to import an SDK is not ours.
        service.wait_for("the gauge", lambda: service.total(RELIABILITY), timeout=15)
        wanted = {"coherence", "agent_reliability"}
        service.wait_for(
            "its signals", lambda: {each["evaluator"] for each in service.signals()} >= wanted
        )
        (seen,) = service.wait_for("the agent", lambda: service.get("/api/v1/agents")["items"])
        assert seen["agent"] == "helper"


def test_the_program_is_as_short_as_it_is_said_to_be() -> None:
    program = ast.parse((ROOT / "examples" / "agent.py").read_text())
    statements = [each for each in ast.walk(program) if isinstance(each, ast.stmt)]

    assert len([each for each in statements if not isinstance(each, ast.ImportFrom)]) <= 11


@pytest.mark.skipif(
    subprocess.run(["unshare", "-rn", "true"], check=False, capture_output=True).returncode != 0,
    reason="this kernel gives no network namespaces to us: the proxy test above stands alone",
)
def test_offline_scoring_needs_no_network_at_all(tmp_path: Path) -> None:
    """Not even loopback: a namespace without any interface."""
    recording = ROOT / "tests" / "data" / "captures" / "strands" / "session.otlp"
    done = ran(
        *("unshare", "-rn", sys.executable),
        *("-m", "collector.commands.start", "evaluate", str(recording)),
    )

    assert done.returncode == 0, done.stderr
    assert "coherence" in done.stdout
