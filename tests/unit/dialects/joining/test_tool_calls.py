"""Spans and messages joined to tool calls, each once."""

import json
from typing import Any

from evaluators.model import Trace
from tests.support.conventions import AGENT, CHAT, answered, asked, call, said, tool
from tests.support.dialect_spans import SpanSpec, span_id, trace_of


def asking(*calls: dict[str, Any]) -> dict[str, Any]:
    return {**CHAT, "gen_ai.output.messages": said("", *calls)}


def calls_of(trace: Trace) -> list[tuple[str, Any, Any]]:
    return [(c.name, c.arguments, c.result) for c in trace.tool_calls]


def test_a_span_and_the_request_for_it_are_one_call_by_id() -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes=asking(call("f", "c1", a=1)), end=1),
        SpanSpec(id=2, attributes=tool("f", **{"gen_ai.tool.call.id": "c1"}), start=2),
        SpanSpec(id=3, attributes={**CHAT, "gen_ai.input.messages": answered("c1", "ok")}, start=3),
    )

    assert calls_of(trace) == [("f", {"a": 1}, "ok")]


def test_calls_without_ids_are_joined_by_arguments_before_order() -> None:
    def span(number: int, value: int, start: int) -> SpanSpec:
        given = {
            "gen_ai.tool.call.arguments": json.dumps({"a": value}),
            "gen_ai.tool.call.result": f"r{value}",
        }
        return SpanSpec(id=number, attributes=tool("f", **given), start=start)

    trace = trace_of(
        SpanSpec(id=1, attributes=asking(call("f", "c1", a=1), call("f", "c2", a=2)), end=1),
        span(2, 2, 2),
        span(3, 1, 3),
    )

    assert [(c.id, c.arguments["a"], c.result) for c in trace.tool_calls] == [
        ("c2", 2, "r2"),
        ("c1", 1, "r1"),
    ]


def test_a_call_only_seen_in_messages_is_kept_without_a_span() -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes=asking(call("f", "c1", a="x")), end=1),
        SpanSpec(
            id=2,
            attributes={**CHAT, "gen_ai.input.messages": answered("c1", "bad argument")},
            start=3,
        ),
    )

    (only,) = trace.tool_calls
    assert (only.span_id, only.result, only.error) == (None, "bad argument", None)


def test_a_history_repeated_in_every_request_makes_no_calls() -> None:
    old = [{"role": "assistant", "parts": [call("f", "old", a=1)]}, json.loads(asked("next"))[0]]
    trace = trace_of(
        SpanSpec(id=1, attributes={**CHAT, "gen_ai.input.messages": json.dumps(old)}),
        SpanSpec(id=2, attributes={**CHAT, "gen_ai.input.messages": json.dumps(old)}, start=1),
    )

    assert trace.tool_calls == ()


def test_a_failed_tool_says_why() -> None:
    raised = ("exception", {"exception.type": "TimeoutError", "exception.message": "too slow"})
    trace = trace_of(
        SpanSpec(id=1, attributes=tool("f"), status=2, message="other", events=[raised]),
        SpanSpec(id=2, attributes=tool("g"), status=2, message="why", start=1),
        SpanSpec(id=3, attributes=tool("h", **{"error.type": "TOOL_ERROR"}), status=2, start=2),
    )

    assert [c.error for c in trace.tool_calls] == ["too slow", "why", "TOOL_ERROR"]


def test_an_id_that_is_no_text_is_none() -> None:
    asked = {"role": "tool", "tool_call_id": "c", "content": "x", "is_error": True}
    chat = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "tool",
        "llm.input_messages.0.message.content": "x",
        "llm.input_messages.0.message.tool_call_id": ["c"],
        "input.value": json.dumps({"messages": [asked]}),
    }
    message = ("gen_ai.tool.message", {"content": "{}", "id": ["c"]})
    run = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "f"}

    trace = trace_of(
        SpanSpec(id=1, attributes=chat), SpanSpec(id=2, parent=1, attributes=run, events=[message])
    )

    assert [(call.name, call.id) for call in trace.tool_calls] == [("f", None)]


def test_a_hand_over_to_an_agent_of_the_trace_is_no_tool_call_but_a_tool_named_so_is() -> None:
    requested = asking(call("transfer_to_refund_agent", "c1"), call("transfer_to_human", "c2"))
    trace = trace_of(
        SpanSpec(id=1, attributes=requested),
        SpanSpec(id=2, attributes={**AGENT, "gen_ai.agent.name": "Refund Agent"}, start=1),
    )

    assert [c.name for c in trace.tool_calls] == ["transfer_to_human"]


def test_the_frameworks_way_to_answer_is_no_tool() -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes=asking(call("final_answer", "c1", answer="x"), call("f", "c2")))
    )

    assert [c.name for c in trace.tool_calls] == ["f"]


def test_a_tool_span_inside_the_same_tools_span_is_the_same_call() -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes=tool("f", **{"gen_ai.tool.call.id": "c1"}), end=9),
        SpanSpec(
            id=2,
            parent=1,
            attributes=tool("f", **{"gen_ai.tool.call.result": "ok"}),
            start=1,
            end=8,
        ),
    )

    assert calls_of(trace) == [("f", None, "ok")]


def test_a_plain_span_named_after_a_requested_tool_is_its_execution() -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes=asking(call("f", "c1")), end=1),
        SpanSpec(id=2, name="running f", start=2, status=2, message="broke"),
    )

    (only,) = trace.tool_calls
    assert (only.span_id, only.error) == (span_id(2), "broke")


def beside(scope: str, id_: int, start: int, end: int, **more: Any) -> SpanSpec:
    given = {"gen_ai.tool.call.arguments": '{"a": 1}', "gen_ai.tool.call.result": "ok", **more}
    return SpanSpec(
        id=id_, parent=1, scope=scope, attributes=tool("f", **given), start=start, end=end
    )


def test_a_call_that_two_instrumentations_recorded_side_by_side_is_one() -> None:
    root = SpanSpec(id=1, end=99)
    named = {"gen_ai.tool.call.id": "c1"}

    by_id = trace_of(root, beside("x", 2, 1, 9, **named), beside("y", 3, 2, 8, **named))
    by_arguments = trace_of(root, beside("x", 2, 1, 9), beside("y", 3, 2, 8))

    assert calls_of(by_id) == calls_of(by_arguments) == [("f", {"a": 1}, "ok")]


def test_calls_of_one_instrumentation_or_one_after_the_other_stay_apart() -> None:
    root = SpanSpec(id=1, end=99)
    first, second = {"gen_ai.tool.call.id": "c1"}, {"gen_ai.tool.call.id": "c2"}

    for one, other in (
        (beside("x", 2, 1, 9), beside("x", 3, 2, 8)),
        (beside("x", 2, 1, 9), beside("y", 3, 10, 12)),
        (beside("x", 2, 1, 9, **first), beside("y", 3, 2, 8, **second)),
    ):
        assert len(trace_of(root, one, other).tool_calls) == 2
