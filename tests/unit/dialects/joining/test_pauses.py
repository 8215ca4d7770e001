"""What ends a span in order to wait, or to hand over, is not a failure: its type says so, not its words."""

from dataclasses import replace
from typing import Any

from tests.support.conventions import AGENT, answered, call, model, raised, ran, said
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.table import for_each
from tests.support.weather import one_call

PAUSES = (
    "langgraph.errors.GraphInterrupt",
    "langgraph.errors.NodeInterrupt",
    "langgraph.errors.ParentCommand",
    "GraphInterrupt",
    "pydantic_ai.exceptions.ApprovalRequired",
    "pydantic_ai.exceptions.CallDeferred",
)
GRAPH = "langgraph.errors.GraphInterrupt"
ASKED = said("", call("send_mail", "c1", to="ann"))


ROOT = SpanSpec(id=1, attributes=AGENT, end=9)


def ended_by(*kinds: str, message: str = "approve?", **more: Any) -> SpanSpec:
    events = [raised(kind, message) for kind in kinds]
    return ran(3, 2, "send_mail", "c1", status=2, events=events, **more)


@for_each("kind", PAUSES)
def test_a_tool_that_waits_has_not_failed(kind: str) -> None:
    trace = trace_of(ROOT, model(2, answer=ASKED), ended_by(kind))

    paused = one_call(trace)
    assert (paused.error, paused.unanswered, trace.status) == (None, True, "unset")


@for_each("status", [0, 2])
@for_each("key", ["error.type", "exception.type"])
def test_an_attribute_says_it_where_no_exception_is_recorded(key: str, status: int) -> None:
    waits = ran(2, 0, "send_mail", status=status, attributes={key: GRAPH})

    assert one_call(trace_of(ROOT, waits)).error is None


@for_each(
    "kinds,message",
    [
        (["TimeoutError"], "GraphInterrupt: approval timed out"),
        (["app.ApprovalRequiredButDenied"], "ApprovalRequired"),
        (["InterruptedError"], "interrupt"),
        (["GraphInterrupt", "SMTPError"], "no route"),  # the last one decides
    ],
)
def test_words_of_a_failure_make_no_pause(kinds: list[str], message: str) -> None:
    failed = one_call(trace_of(ROOT, ended_by(*kinds, message=message)))

    assert (failed.error, failed.unanswered) == (message, False)


def test_a_root_that_a_pause_ended_is_no_error() -> None:
    failed = replace(ROOT, status=2, message="bad")
    own = trace_of(replace(ROOT, status=2, events=[raised("langgraph.errors.GraphInterrupt")]))
    around = trace_of(failed, ended_by("GraphInterrupt"))
    stated = replace(failed, attributes=AGENT | {"error.type": "ValueError"})
    beside = trace_of(stated, ended_by("GraphInterrupt"))

    assert [(t.status, t.error) for t in (own, around)] == [("unset", None)] * 2
    assert (beside.status, beside.error) == ("error", "bad")


def test_a_paused_call_that_ran_after_all_is_one_call() -> None:
    in_span = trace_of(
        ROOT, ended_by("GraphInterrupt"), ran(4, 5, "send_mail", "c1", result="sent")
    )
    paused = model(2, answer=ASKED), ended_by("pydantic_ai.exceptions.ApprovalRequired")
    in_messages = trace_of(ROOT, *paused, model(4, 5, answered("c1", "sent")))

    for trace in (in_span, in_messages):
        done = one_call(trace)
        assert (done.result, done.error, done.unanswered) == ("sent", None, False)
