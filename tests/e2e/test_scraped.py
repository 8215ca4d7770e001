"""What Prometheus itself thinks of /metrics: promtool finds nothing to say, a real server has the series."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import Turn, request, spans
from tests.support.ports import free_ports
from tests.support.sender import send
from tests.support.service import Service

REQUIRED = os.environ.get("SPANWISE_REQUIRE_PROMTOOL") == "1"
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not REQUIRED and not (shutil.which("promtool") and shutil.which("prometheus")),
        reason="Prometheus is not installed (SPANWISE_REQUIRE_PROMTOOL=1 makes this a failure)",
    ),
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """After a good and a bad session."""
    folder = tmp_path_factory.mktemp("scraped")
    with Service(folder / "data", "windows.trace.root_grace=300ms") as running:
        for session in ("good", "bad"):
            for number in range(3):
                turn = Turn(
                    service="shop-bot", session=session, number=number, fails=session == "bad"
                )
                send(running.grpc, request("shop-bot", spans(turn)))
        running.wait_for("scored", lambda: len(scored(running)) == 6)
        running.wait_for("the gauge", lambda: "spanwise_agent_reliability_ratio" in text(running))
        yield running


def scored(service: Service) -> set[str]:
    return {each["trace_id"] for each in service.signals() if each["scope"] == "trace"}


def text(service: Service, accept: str = "text/plain") -> str:
    wish = urllib.request.Request(f"{service.admin}/metrics", headers={"accept": accept})
    with urllib.request.urlopen(wish, timeout=10) as answer:
        return answer.read().decode()


def test_promtool_has_nothing_to_say(service: Service) -> None:
    checked = subprocess.run(
        ["promtool", "check", "metrics"],
        input=text(service),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_openmetrics_has_exemplars_that_name_a_trace(service: Service) -> None:
    said = text(service, "application/openmetrics-text; version=1.0.0")

    assert said.endswith("# EOF\n")
    exemplars = [line for line in said.splitlines() if " # {" in line]
    assert exemplars
    assert all("trace_id=" in line.split(" # ", 1)[1] for line in exemplars)


def test_no_label_names_a_trace_a_session_or_a_user(service: Service) -> None:
    forbidden = ("trace_id=", "session_id=", "user_id=", "session=", "prompt=")

    assert [line for line in text(service).splitlines() if any(f in line for f in forbidden)] == []


def test_a_real_prometheus_scrapes_the_series(service: Service, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    target = service.admin.removeprefix("http://")
    (tmp_path / "prometheus.yml").write_text(
        "global: {scrape_interval: 500ms}\n"
        f"scrape_configs: [{{job_name: spanwise, static_configs: [{{targets: ['{target}']}}]}}]\n"
    )
    process = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=error",
        ],
        stdin=subprocess.DEVNULL,
    )
    try:
        found = wait_for_series(port, "spanwise_agent_reliability_ratio")
        failed = query(port, 'spanwise_evaluations_total{outcome="fail"} > 0')
        up = query(port, 'up{job="spanwise"}')
    finally:
        process.terminate()
        process.wait(60)

    assert [each["metric"]["service"] for each in found] == ["shop-bot"]
    assert 0 <= float(found[0]["value"][1]) < 1
    assert "tool_correctness" in {each["metric"]["evaluator"] for each in failed}
    assert [each["value"][1] for each in up] == ["1"]


def query(port: int, expression: str) -> list[dict[str, Any]]:
    wish = urllib.parse.urlencode({"query": expression})
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?{wish}", timeout=5) as got:
        return json.load(got)["data"]["result"]


def wait_for_series(port: int, name: str, timeout: float = 90.0) -> list[dict[str, Any]]:
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        try:
            if found := query(port, name):
                return found
        except (urllib.error.URLError, ConnectionError):
            pass  # it is still starting
        time.sleep(0.2)
    raise AssertionError(f"no series `{name}` within {timeout:g} s")
