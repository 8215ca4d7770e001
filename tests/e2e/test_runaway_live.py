"""The real process reports an open trace that loops: gauge, page, stream; after kill -9; and its closing decides."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import evaluated
from tests.support.dialect_spans import TRACE_ID, SpanSpec, request
from tests.support.recordings import write
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SETTINGS = ("windows.trace.root_grace=200ms", "windows.trace.glance=500ms")
SERIES = 'spanwise_runaway_traces{agent="helper",reason="repeated_calls",service="shop"}'


def calls(first: int, number: int) -> bytes:
    """The same call so many times, of a trace whose root has not come."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.agent.name": "helper",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.call.arguments": json.dumps({"q": "where is it"}),
        "gen_ai.tool.call.result": "nothing found",
    }
    spans = (
        SpanSpec(id=first + n, parent=1, attributes=attributes, start=first + n, end=first + n + 1)
        for n in range(number)
    )
    return request(*spans)


def root() -> bytes:
    """The agent's own span, which alone names the session."""
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "helper",
        "gen_ai.conversation.id": "s-1",
        "gen_ai.input.messages": json.dumps(
            [{"role": "user", "parts": [{"type": "text", "content": "Where is it?"}]}]
        ),
        "gen_ai.output.messages": json.dumps(
            [{"role": "assistant", "parts": [{"type": "text", "content": "I do not know."}]}]
        ),
    }
    return request(SpanSpec(id=1, attributes=attributes, start=0, end=500))


def runaways(signals: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in signals if each["evaluator"] == "runaway"]


def test_a_loop_is_reported_while_it_goes_on_after_a_kill_and_decided_when_it_closes(
    tmp_path: Path,
) -> None:
    recording = tmp_path / "all.otlp"
    write(recording, (calls(10, 6), calls(20, 8), root()))
    (expected,) = runaways(evaluated(str(recording)))

    with Service(tmp_path / "data", *SETTINGS) as service:
        send(service.grpc, calls(10, 6))
        send(service.grpc, calls(20, 8))
        service.wait_for("the gauge", lambda: service.metrics().get(SERIES) == 1)
        (early,) = service.wait_for("the API", lambda: _listed(service))
        page = service.text(f"/trace?id={TRACE_ID}")
        overview = service.text("/")

        service.kill()
        service.start()
        service.wait_for("the gauge after the kill", lambda: service.metrics().get(SERIES) == 1)

        send(service.grpc, root())
        service.wait_for("the closing", lambda: SERIES not in service.metrics())
        last = service.wait_for("the final outcome", lambda: _final(service))
        sessions = service.get("/api/v1/sessions")["items"]
        closed_page = service.text(f"/trace?id={TRACE_ID}")

    assert (early["final"], early["closed"], early["score"], early["revision"]) == (
        False,
        None,
        0.0,
        0,
    )
    assert "running away now" in page
    assert "running away now" in overview
    assert "running away now" not in closed_page
    assert (last["closed"], last["score"], last["success"]) == ("root_ended", 0.0, False)
    assert last["id"] == expected["id"] != early["id"]
    assert [each["session_id"] for each in sessions] == ["s-1"]


def _listed(service: Service) -> list[dict[str, Any]]:
    return runaways(service.get("/api/v1/signals?evaluator=runaway")["items"])


def _final(service: Service) -> dict[str, Any] | None:
    found = runaways(service.get(f"/api/v1/traces/{TRACE_ID}")["signals"])
    return next((each for each in found if each["final"]), None)
