"""Spans that come after their trace was closed: a revision, a duplicate, or ignored, and every one counted."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agents import request
from tests.support.asking import asked, span, trace_id
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

BOT = "desk-bot"
LATE = 'spanwise_late_spans_total{action="%s",service="desk-bot"}'


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    settings = ("windows.trace.root_grace=500ms", "windows.trace.max_revisions=2")
    with Service(tmp_path / "data", *settings) as running:
        yield running


def revisions(service: Service, trace: str) -> list[int]:
    """Of one evaluator, in order of arrival."""
    return [
        each["revision"]
        for each in service.signals()
        if each["trace_id"] == trace and each["evaluator"] == "tool_correctness"
    ]


def counted(service: Service, name: str) -> float:
    return service.metrics().get(name, 0.0)


def late(session: str, tool: str) -> bytes:
    return request(BOT, [span(session, "", child=tool)])


def test_a_late_span_is_a_revision_a_repeat_is_not_and_the_counters_add_up(
    service: Service,
) -> None:
    trace = trace_id("revised")
    question = asked("revised", "Where is my order?")
    send(service.grpc, question + question)  # one request: a repeat that came alone could come late
    service.wait_for("it is scored", lambda: revisions(service, trace) == [0])

    send(service.grpc, late("revised", "lookup"))
    service.wait_for("it is scored again", lambda: revisions(service, trace) == [0, 1])
    send(service.grpc, late("revised", "lookup"))
    service.wait_for("a duplicate", lambda: counted(service, LATE % "duplicate"))
    send(service.grpc, late("revised", "refund"))
    service.wait_for("the last revision", lambda: revisions(service, trace) == [0, 1, 2])
    send(service.grpc, late("revised", "one too many"))
    service.wait_for("it is ignored", lambda: counted(service, LATE % "ignored"))

    assert revisions(service, trace) == [0, 1, 2]
    metrics = service.metrics()
    assert metrics[LATE % "revised"] == 2
    assert metrics[LATE % "duplicate"] == 1
    assert metrics[LATE % "ignored"] == 1
    assert metrics['spanwise_spans_ignored_total{reason="duplicate"}'] == 1
    # What was accepted is in a trace, or was a duplicate, or was ignored: nothing went anywhere else.
    accepted = metrics['spanwise_spans_received_total{result="accepted",transport="grpc"}']
    in_traces = service.shown(trace, spans=3, revision=2)["trace"]["spans"]
    assert accepted == in_traces + 1 + 1 + 1 == 6
