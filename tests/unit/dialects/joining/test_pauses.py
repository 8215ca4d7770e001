"""What ends a span in order to wait, or to hand over, is not a failure: its type says so, not its words."""

from typing import Any

import pytest

from tests.support.conventions import AGENT, CHAT, answered, call, said, tool
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.weather import one_call

PAUSES = (
    "langgraph.errors.GraphInterrupt",
    "langgraph.errors.NodeInterrupt",
    "langgraph.errors.ParentCommand",
    "GraphInterrupt",
    "pydantic_ai.exceptions.ApprovalRequired",
    "pydantic_ai.exceptions.CallDeferred",
)
ASKED = {**CHAT, "gen_ai.output.messages": said("", call("send_mail", "c1", to="ann"))}


def ended_by(kind: str, **more: Any) -> SpanSpec:
    attributes = tool("send_mail", **{"gen_ai.tool.call.id": "c1"}, **more)
    event = ("exception", {"exception.type": kind, "exception.message": "approve?"})
    return SpanSpec(id=3, parent=1, attributes=attributes, start=2, end=3, status=2, events=[event])


@pytest.mark.parametrize("kind", PAUSES)
def test_a_tool_that_waits_has_not_failed(kind: str) -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes=AGENT, end=9),
        SpanSpec(id=2, parent=1, attributes=ASKED, end=1),
        ended_by(kind),
    )

    paused = one_call(trace)
    assert (paused.error, paused.unanswered, trace.status) == (None, True, "unset")


@pytest.mark.parametrize("status", [0, 2])
@pytest.mark.parametrize("key", ["error.type", "exception.type"])
def test_an_attribute_says_it_where_no_exception_is_recorded(key: str, status: int) -> None:
    attributes = tool("send_mail", **{key: "langgraph.errors.GraphInterrupt"})
    waits = SpanSpec(id=2, parent=1, attributes=attributes, status=status)
    trace = trace_of(SpanSpec(id=1), waits)

    assert one_call(trace).error is None


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("TimeoutError", "GraphInterrupt: approval timed out"),
        ("app.ApprovalRequiredButDenied", "ApprovalRequired"),
        ("InterruptedError", "interrupt"),
    ],
)
def test_words_of_a_failure_make_no_pause(kind: str, message: str) -> None:
    event = ("exception", {"exception.type": kind, "exception.message": message})
    attributes = tool("send_mail")
    failed = SpanSpec(id=2, parent=1, attributes=attributes, status=2, events=[event])

    paused = one_call(trace_of(SpanSpec(id=1), failed))
    assert (paused.error, paused.unanswered) == (message, False)


def test_the_last_exception_decides() -> None:
    events = [
        ("exception", {"exception.type": "GraphInterrupt", "exception.message": "approve?"}),
        ("exception", {"exception.type": "SMTPError", "exception.message": "no route"}),
    ]
    failed = SpanSpec(id=2, parent=1, attributes=tool("send_mail"), status=2, events=events)

    assert one_call(trace_of(SpanSpec(id=1), failed)).error == "no route"


def test_a_root_that_a_pause_ended_is_no_error() -> None:
    event = ("exception", {"exception.type": "langgraph.errors.GraphInterrupt"})
    own = trace_of(SpanSpec(id=1, attributes=AGENT, status=2, events=[event]))
    around = trace_of(
        SpanSpec(id=1, attributes=AGENT, status=2, message="approve?"),
        ended_by("GraphInterrupt"),
    )
    failed = {"error.type": "ValueError"}
    beside = trace_of(
        SpanSpec(id=1, attributes={**AGENT, **failed}, status=2, message="bad"),
        ended_by("GraphInterrupt"),
    )

    assert [(t.status, t.error) for t in (own, around)] == [("unset", None)] * 2
    assert (beside.status, beside.error) == ("error", "bad")


def test_a_paused_call_that_ran_after_all_is_one_call() -> None:
    ran = tool("send_mail", **{"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "sent"})
    in_span = trace_of(
        SpanSpec(id=1, attributes=AGENT, end=9),
        ended_by("GraphInterrupt"),
        SpanSpec(id=4, parent=1, attributes=ran, start=5, end=6),
    )
    history = {**CHAT, "gen_ai.input.messages": answered("c1", "sent")}
    in_messages = trace_of(
        SpanSpec(id=1, attributes=AGENT, end=9),
        SpanSpec(id=2, parent=1, attributes=ASKED, end=1),
        ended_by("pydantic_ai.exceptions.ApprovalRequired"),
        SpanSpec(id=4, parent=1, attributes=history, start=5, end=6),
    )

    for trace in (in_span, in_messages):
        done = one_call(trace)
        assert (done.result, done.error, done.unanswered) == ("sent", None, False)
