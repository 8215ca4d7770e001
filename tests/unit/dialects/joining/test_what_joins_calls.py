"""An id joins whatever clocks and names say; arguments do before time; other arguments are another call."""

import json
from typing import Any

import pytest

from evaluators.model import Trace
from tests.support.conventions import AGENT, CHAT, answered, call, said, tool
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.table import for_each

AT = 200_000
"""When the model was asked, in milliseconds."""


def asking(*calls: dict[str, Any]) -> dict[str, Any]:
    return {**CHAT, "gen_ai.output.messages": said("", *calls)}


ASKED_FOR_TWO = (
    SpanSpec(id=1, attributes=AGENT, start=AT - 10, end=AT + 99),
    SpanSpec(
        id=2,
        parent=1,
        attributes=asking(call("get_issue", "c0", n=0), call("get_issue", "c1", n=1)),
        start=AT,
        end=AT + 1,
    ),
)
"""An agent, and its model, which asks for two issues at once."""


def ran(number: int, at: int, *, call_id: str | None, parent: int = 1, **given: Any) -> SpanSpec:
    attributes = tool("get_issue", **{"gen_ai.tool.call.arguments": json.dumps(given)})
    attributes["gen_ai.tool.call.result"] = f"issue {given}"
    if call_id is not None:
        attributes["gen_ai.tool.call.id"] = call_id
    return SpanSpec(id=number, parent=parent, attributes=attributes, start=at, end=at + 1)


def seen(trace: Trace) -> list[tuple[str | None, Any, Any]]:
    calls = sorted(trace.tool_calls, key=lambda c: str(c.id))
    return [(c.id, c.arguments, c.result) for c in calls]


@for_each("skew", [-120_000, -4_000, -1_000, 1_000, 120_000])
@for_each("with_ids", [True, False])
def test_a_tools_host_with_another_clock_makes_no_second_call(skew: int, with_ids: bool) -> None:
    at = AT + skew
    trace = trace_of(
        *ASKED_FOR_TWO,
        ran(3, at + 2, call_id="c1" if with_ids else None, n=1),
        ran(4, at + 3, call_id="c0" if with_ids else None, n=0),
    )

    assert seen(trace) == [
        ("c0", {"n": 0}, "issue {'n': 0}"),
        ("c1", {"n": 1}, "issue {'n': 1}"),
    ]


def test_arguments_join_before_the_time_does() -> None:
    """Of two requests of one tool, the first left a span by a clock that is behind, the other none."""
    trace = trace_of(
        SpanSpec(id=1, attributes=AGENT, start=AT - 10, end=AT + 99),
        SpanSpec(
            id=2, parent=1, attributes=asking(call("get_issue", "c0", n=0)), start=AT, end=AT + 1
        ),
        ran(3, AT - 4_000, call_id=None, n=0),
        SpanSpec(
            id=4,
            parent=1,
            attributes=asking(call("get_issue", "c1", n=1)),
            start=AT + 5,
            end=AT + 6,
        ),
        ran(5, AT + 7, call_id=None, n=1),
    )

    assert [(c[0], c[1]) for c in seen(trace)] == [("c0", {"n": 0}), ("c1", {"n": 1})]


@pytest.mark.parametrize("skew", [-120_000, -4_000, 4_000])
def test_spans_that_say_a_name_alone_are_the_calls_of_that_name_whatever_their_clock(
    skew: int,
) -> None:
    trace = trace_of(
        *ASKED_FOR_TWO,
        *(
            SpanSpec(id=n, parent=1, attributes=tool("get_issue"), start=AT + skew + n)
            for n in (3, 4)
        ),
    )

    assert [(c[0], c[1]) for c in seen(trace)] == [("c0", {"n": 0}), ("c1", {"n": 1})]


@pytest.mark.parametrize("skew", [0, -120_000])
@pytest.mark.parametrize("order", [("a", "b", "c"), ("c", "a", "b"), ("b", "c", "a")])
def test_parallel_spans_with_nothing_but_a_result_take_the_id_that_the_model_was_sent(
    order: tuple[str, ...], skew: int
) -> None:
    asked = [call("search", f"c-{q}", q=q) for q in "abc"]
    spans = [
        SpanSpec(
            id=10 + index,
            parent=1,
            attributes=tool("search", **{"gen_ai.tool.call.result": f"found {q}"}),
            start=AT + skew + 2 + index,
            end=AT + skew + 9 - index,
        )
        for index, q in enumerate(order)
    ]
    history = [json.loads(answered(f"c-{q}", f"found {q}")) for q in "abc"]
    sent = json.dumps([message for messages in history for message in messages])
    trace = trace_of(
        SpanSpec(id=1, attributes=AGENT, start=AT, end=AT + 20),
        SpanSpec(id=2, parent=1, attributes=asking(*asked), start=AT, end=AT + 1),
        *spans,
        SpanSpec(id=3, parent=1, attributes={**CHAT, "gen_ai.input.messages": sent}, start=AT + 15),
    )

    assert seen(trace) == [(f"c-{q}", {"q": q}, f"found {q}") for q in "abc"]


# --- a tool inside a tool --------------------------------------------------------------------------------------------


def test_chained_or_recursive_calls_with_other_arguments_are_calls_of_their_own() -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes=AGENT, end=20),
        *(ran(n, n, call_id=None, parent=n - 1, path=f"p{n}") for n in (2, 3, 4)),
    )

    assert [c.arguments for c in trace.tool_calls] == [{"path": f"p{n}"} for n in (2, 3, 4)]


def test_a_layer_of_one_call_may_know_fewer_arguments() -> None:
    outer, inner = ({"city": "Oslo", "unit": "C"}, {"city": "Oslo"})
    for one, two in ((outer, inner), (inner, outer), (outer, outer)):
        layers = [
            SpanSpec(
                id=number,
                parent=number - 1,
                attributes=tool("f", **{"gen_ai.tool.call.arguments": json.dumps(given)}),
                start=number,
                end=9 - number,
            )
            for number, given in ((2, one), (3, two))
        ]
        assert len(trace_of(SpanSpec(id=1, end=9), *layers).tool_calls) == 1


@pytest.mark.parametrize(
    "name", ["mcp__linear__get_issue", "linear_get_issue", "linear.getIssue", "callMcpTool"]
)
def test_what_an_mcp_client_sends_is_the_call_of_the_framework(name: str) -> None:
    def sent(number: int, kind: int) -> SpanSpec:
        attributes = tool("get_issue", **{"mcp.method.name": "tools/call"})
        return SpanSpec(
            id=number, parent=number - 1, kind=kind, attributes=attributes, start=number
        )

    outer = SpanSpec(id=2, parent=1, attributes=tool(name), start=1, end=9)
    trace = trace_of(SpanSpec(id=1, end=9), outer, sent(3, 3), sent(4, 2))

    assert [c.name for c in trace.tool_calls] == [name]


def test_several_requests_to_servers_inside_one_tool_are_calls_of_their_own() -> None:
    outer = SpanSpec(id=2, parent=1, attributes=tool("run_script"), start=1, end=9)
    sent = [
        SpanSpec(
            id=number,
            parent=2,
            kind=3,
            start=number,
            attributes=tool(name, **{"mcp.method.name": "tools/call"}),
        )
        for number, name in ((3, "get_issue"), (4, "close_issue"))
    ]
    trace = trace_of(SpanSpec(id=1, end=9), outer, *sent)

    assert [c.name for c in trace.tool_calls] == ["run_script", "get_issue", "close_issue"]


def test_of_calls_that_start_together_the_one_that_ended_first_is_first() -> None:
    spans = [
        SpanSpec(id=number, parent=1, attributes=tool(name), start=1, end=end)
        for number, name, end in ((2, "slow", 9), (3, "fast", 2))
    ]
    assert [c.name for c in trace_of(SpanSpec(id=1, end=9), *spans).tool_calls] == ["fast", "slow"]
