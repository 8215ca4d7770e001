"""Traces that hold a worker: others are scored meanwhile, whoever's worker it is."""

import json
import time
from pathlib import Path

import pytest

from tests.support import plugin
from tests.support.agents import request
from tests.support.asking import asked, span, trace_id
from tests.support.command import evaluated
from tests.support.recordings import write
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

SETTINGS = ("windows.trace.root_grace=100ms", "embedder.kind=none")
DEEP = 40


def hostile(number: int) -> bytes:
    """A tool call against a schema of 2^40 steps."""
    definitions: dict[str, object] = {
        f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}, {"$ref": f"#/$defs/a{n + 1}"}]}
        for n in range(DEEP)
    }
    definitions[f"a{DEEP}"] = {"type": "object"}
    tool = {
        "type": "function",
        "name": "lookup",
        "parameters": {"$defs": definitions, "$ref": "#/$defs/a0"},
    }
    root = span("hostile", "Where is it?", number=number)
    root.attributes.add(key="gen_ai.tool.definitions").value.string_value = json.dumps([tool])
    call = span("hostile", "", number=number, child="lookup")
    call.attributes.add(key="gen_ai.tool.call.arguments").value.string_value = "{}"
    return request("hostile-bot", [root, call])


def scored(service: Service) -> dict[str, dict[str, str]]:
    """Trace id -> evaluator -> outcome."""
    found: dict[str, dict[str, str]] = {}
    for each in service.signals():
        if each["scope"] == "trace":
            found.setdefault(each["trace_id"], {})[each["evaluator"]] = each["outcome"]
    return found


def test_schemas_without_end_hold_up_no_other_agent(tmp_path: Path) -> None:
    with Service(tmp_path / "data", *SETTINGS) as service:
        for number in range(3):
            send(service.grpc, hostile(number))
        time.sleep(0.5)  # they are closed first
        for number in range(5):
            send(service.grpc, asked("good", "Where is my order?", number=number))

        wanted = {trace_id("good", number) for number in range(5)}
        service.wait_for("others are scored", lambda: wanted <= scored(service).keys())
        hostiles = {trace_id("hostile", number) for number in range(3)}
        service.wait_for("so are they", lambda: hostiles <= scored(service).keys())

        outcomes = scored(service)[trace_id("hostile", 0)]
        assert outcomes["argument_correctness"] == "not_applicable"
        assert outcomes["confidence"] == "scored"


def test_the_same_limit_holds_offline(tmp_path: Path) -> None:
    recording = tmp_path / "hostile.otlp"
    write(recording, [hostile(0)])

    found = evaluated(str(recording), timeout=20)

    outcomes = {each["evaluator"]: each["outcome"] for each in found}
    assert outcomes["argument_correctness"] == "not_applicable"


def test_a_service_gets_its_share_of_worker_time_and_no_more(tmp_path: Path) -> None:
    """A minute of one service's work is there first."""
    installed = plugin.obeying_reader(tmp_path / "installed")
    with Service(
        tmp_path / "data", *SETTINGS, environment={"PYTHONPATH": str(installed)}
    ) as service:
        for number in range(30):
            send(service.grpc, asked("slow", "sleep 2", number=number, service="slow-bot"))
        time.sleep(1)  # they are closed first
        for number in range(3):
            send(service.grpc, asked("good", "hello", number=number))

        wanted = {trace_id("good", number) for number in range(3)}
        service.wait_for("others are scored", lambda: wanted <= scored(service).keys())

        slow = {trace_id("slow", number) for number in range(30)}
        assert len(slow & scored(service).keys()) < 15
