"""Spans and messages joined to tool calls, each once."""

import json
from typing import Any

from tests.support.conventions import AGENT, answered, asked, call, model, raised, ran, said, tool
from tests.support.dialect_spans import SpanSpec, span_id, trace_of
from tests.support.openinference import flat, of
from tests.support.table import for_each


def asking(*calls: dict[str, Any], number: int = 1) -> SpanSpec:
    return model(number, parent=0, answer=said("", *calls))


def calls_of(*spans: SpanSpec) -> list[tuple[str, Any, Any]]:
    return [(c.name, c.arguments, c.result) for c in trace_of(*spans).tool_calls]


def names_of(*spans: SpanSpec) -> list[str]:
    return [name for name, _, _ in calls_of(*spans)]


def test_a_span_and_the_request_for_it_are_one_call_by_id() -> None:
    wanted = asking(call("f", "c1", a=1))
    told = model(3, 3, answered("c1", "ok"), parent=0)

    assert calls_of(wanted, ran(2, 2, "f", "c1", parent=0), told) == [("f", {"a": 1}, "ok")]


def test_calls_without_ids_are_joined_by_arguments_before_order() -> None:
    spans = [
        ran(n, n, "f", parent=0, arguments=json.dumps({"a": a}), result=f"r{a}")
        for n, a in ((2, 2), (3, 1))
    ]
    trace = trace_of(asking(call("f", "c1", a=1), call("f", "c2", a=2)), *spans)

    found = [(c.id, c.arguments["a"], c.result) for c in trace.tool_calls]
    assert found == [("c2", 2, "r2"), ("c1", 1, "r1")]


def test_a_call_only_seen_in_messages_is_kept_without_a_span() -> None:
    trace = trace_of(
        asking(call("f", "c1", a="x")), model(2, 3, answered("c1", "bad argument"), parent=0)
    )

    (only,) = trace.tool_calls
    assert (only.span_id, only.result, only.error) == (None, "bad argument", None)


def test_a_history_repeated_in_every_request_makes_no_calls() -> None:
    old = [{"role": "assistant", "parts": [call("f", "old", a=1)]}, json.loads(asked("next"))[0]]

    assert calls_of(*(model(n, n, json.dumps(old), parent=0) for n in (1, 2))) == []


def test_a_failed_tool_says_why() -> None:
    events = [raised("TimeoutError", "too slow")]
    trace = trace_of(
        ran(1, 0, "f", status=2, message="other", events=events),
        ran(2, 1, "g", status=2, message="why"),
        ran(3, 2, "h", status=2, attributes={"error.type": "TOOL_ERROR"}),
    )

    assert [c.error for c in trace.tool_calls] == ["too slow", "why", "TOOL_ERROR"]


def test_an_id_that_is_no_text_is_none() -> None:
    told = {"role": "tool", "content": "x"}
    request = json.dumps({"messages": [{**told, "tool_call_id": "c", "is_error": True}]})
    sent = flat("input", {**told, "tool_call_id": ["c"]})
    message = ("gen_ai.tool.message", {"content": "{}", "id": ["c"]})

    trace = trace_of(
        of("LLM", input__value=request) | sent, SpanSpec(attributes=tool("f"), events=[message])
    )

    assert [(call.name, call.id) for call in trace.tool_calls] == [("f", None)]


def test_a_hand_over_to_an_agent_of_the_trace_is_no_tool_call_but_a_tool_named_so_is() -> None:
    requested = asking(call("transfer_to_refund_agent", "c1"), call("transfer_to_human", "c2"))
    expert = SpanSpec(id=2, attributes={**AGENT, "gen_ai.agent.name": "Refund Agent"}, start=1)

    assert names_of(requested, expert) == ["transfer_to_human"]


def test_the_frameworks_way_to_answer_is_no_tool() -> None:
    assert names_of(asking(call("final_answer", "c1", answer="x"), call("f", "c2"))) == ["f"]


def test_a_tool_span_inside_the_same_tools_span_is_the_same_call() -> None:
    outer, inner = ran(1, 0, "f", "c1", parent=0, end=9), ran(2, 1, "f", result="ok", end=8)

    assert calls_of(outer, inner) == [("f", None, "ok")]


def test_a_plain_span_named_after_a_requested_tool_is_its_execution() -> None:
    running = SpanSpec(id=2, name="running f", start=2, status=2, message="broke")

    (only,) = trace_of(asking(call("f", "c1")), running).tool_calls
    assert (only.span_id, only.error) == (span_id(2), "broke")


def beside(scope: str, id_: int, start: int, end: int, call_id: str | None = None) -> SpanSpec:
    return ran(id_, start, "f", call_id, scope=scope, end=end, arguments='{"a": 1}', result="ok")


WITHIN = SpanSpec(id=1, end=99)


@for_each(
    "one,other,count",
    [
        (beside("x", 2, 1, 9, "c1"), beside("y", 3, 2, 8, "c1"), 1),  # by id
        (beside("x", 2, 1, 9), beside("y", 3, 2, 8), 1),  # by arguments
        (beside("x", 2, 1, 9), beside("x", 3, 2, 8), 2),  # one instrumentation
        (beside("x", 2, 1, 9), beside("y", 3, 10, 12), 2),  # one after the other
        (beside("x", 2, 1, 9, "c1"), beside("y", 3, 2, 8, "c2"), 2),
    ],
)
def test_a_call_that_two_instrumentations_recorded_side_by_side_is_one(
    one: SpanSpec, other: SpanSpec, count: int
) -> None:
    assert calls_of(WITHIN, one, other) == [("f", {"a": 1}, "ok")] * count
