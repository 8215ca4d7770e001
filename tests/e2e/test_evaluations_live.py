"""Scores of others and the real process: early, late, twice, over kill -9, thousands at once; each is once a signal."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.commands.cli import main
from tests.e2e.test_feedback_live import AT_ONCE, QUICK, post, turn
from tests.support.agents import request, spans, trace_id
from tests.support.dialect_spans import key_values
from tests.support.fleet import quiet
from tests.support.sender import send
from tests.support.service import Service

SAID = 2_000  # 10,000 take five times as long, and show the same

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def score(number: int, name: str = "tone", value: float = 0.5, **fields: Any) -> dict[str, Any]:
    return {"trace_id": trace_id(turn(number)).hex(), "name": name, "value": value, **fields}


def say(service: Service, *scores: dict[str, Any]) -> int:
    return int(post(service, "/v1/evaluations", json.dumps(scores).encode())["accepted"])


def external(service: Service) -> list[dict[str, Any]]:
    return [each for each in service.signals() if each["method"] == "external"]


def by_name(service: Service) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in {each["id"]: each for each in external(service)}.values():
        found[each["evaluator"]] = found.get(each["evaluator"], 0) + 1
    return found


def test_each_score_is_one_signal_and_no_signal_of_ours_changes(tmp_path: Path) -> None:
    with Service(tmp_path / "data", *QUICK) as service:
        assert say(service, score(0, "before")) == 1
        service.kill()
        service.start()
        send(service.grpc, request("shop", spans(turn(0))))
        service.wait_for("the early score", lambda: by_name(service) == {"before": 1})
        service.wait_for(
            "the session has closed",
            lambda: any(each["scope"] == "session" and each["final"] for each in service.signals()),
        )
        quiet(service)
        ours = {each["id"]: each for each in service.signals() if each["method"] != "external"}

        said = score(0, "after", time="2026-09-21T15:00:00Z")
        assert say(service, said, score(0, "whole", scope="session")) == 2
        service.kill()
        service.start()
        assert say(service, said, said) == 2
        assert say(service, score(0, "last")) == 1
        service.wait_for(
            "each once",
            lambda: by_name(service) == {"before": 1, "after": 1, "whole": 1, "last": 1},
        )
        quiet(service)
        now = {each["id"]: each for each in service.signals() if each["method"] != "external"}
        assert now == ours
        assert {(each["service"], each["session_id"]) for each in external(service)} == {
            ("shop", "s-0")
        }
        shown = service.get(f"/api/v1/traces/{trace_id(turn(0)).hex()}")["signals"]
        assert {"before", "after", "last"} <= {each["evaluator"] for each in shown}
        assert service.get("/api/v1/sessions/s-0?service=shop")["feedback"] == []


def test_thousands_at_once(tmp_path: Path) -> None:
    sessions = 40
    with Service(tmp_path / "data", *QUICK) as service:
        for first in range(0, SAID, AT_ONCE):
            numbers = range(first, first + AT_ONCE)
            named = (
                score(each % sessions, id=f"{each}", value=each / SAID, label="pass")
                for each in numbers
            )
            assert say(service, *named) == AT_ONCE
        for number in range(sessions):
            send(service.grpc, request("shop", spans(turn(number))))

        service.wait_for(
            "all of it is joined",
            lambda: service.total("spanwise_external_evaluations_total") == SAID,
            120,
        )
        service.wait_for(
            "a trace counts once",
            lambda: service.total("spanwise_evaluations_total", 'evaluator="tone"') == sessions,
        )
        service.wait_for(
            "each is one signal", lambda: len({each["id"] for each in external(service)}) == SAID
        )
        assert len(external(service)) == SAID


THRESHOLD = "evaluations.thresholds={tone: 0.5}"
DROP = 'spanwise_drift_detected{agent="support",evaluator="%s",scope="trace",service="shop"}'
MEAN = 'spanwise_window_mean_ratio{agent="support",evaluator="tone",scope="trace",service="shop"}'


def release(service: Service, version: str, numbers: range, lowest: float) -> None:
    """Sessions that differ in nothing but their version, and the score of each: between `lowest` and 0.3 above."""
    for number in numbers:
        made = ExportTraceServiceRequest.FromString(request("shop", spans(turn(2 * number))))
        attributes = made.resource_spans[0].resource.attributes
        attributes.extend(key_values({"service.version": version}))
        send(service.grpc, made.SerializeToString())
    values = {number: lowest + number * 7 % 30 / 100 for number in numbers}
    assert say(service, *(score(2 * n, value=each) for n, each in values.items())) == len(values)


def test_a_release_that_lowers_a_score_of_others_alone_is_noticed_as_ours_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The default configuration, but for the threshold; everything else about the sessions stays as it was."""
    with Service(tmp_path / "data", THRESHOLD) as service:
        release(service, "1", range(60), 0.6)
        service.wait_for("a past", lambda: by_name(service) == {"tone": 60}, 120)
        assert service.metrics().get(DROP % "tone", 0) == 0
        release(service, "2", range(60, 90), 0.1)

        service.wait_for("the drop", lambda: service.metrics().get(DROP % "tone") == 1, 120)
        metrics = service.metrics()
        raised = [name for name, value in metrics.items() if "drift_detected" in name and value]
        assert raised == [DROP % "tone"], "nothing else has changed"
        assert metrics[MEAN] < 0.7, "it was 0.74"
        for agent in service.get("/api/v1/agents")["items"]:
            assert [each["evaluator"] for each in agent["drops"]] == ["tone"]
        page = service.text("/agent?service=shop&agent=support")
        assert "Since tone dropped" in " ".join(re.sub("<[^>]*>", " ", page).split())
    # As for scores of ours, a session counts for its version once it is quiet.
    with Service(tmp_path / "data", THRESHOLD, "windows.agent.settle=1s") as service:
        service.wait_for("it after a restart", lambda: service.metrics().get(DROP % "tone") == 1)
        asked = ["compare", "--url", service.admin, "--service", "shop", "--evaluator", "tone"]
        asked += ["--candidate", "2", "--baseline", "1"]
        service.wait_for("the verdict", lambda: main(asked) == 1)
        assert "tone" in capsys.readouterr().out
