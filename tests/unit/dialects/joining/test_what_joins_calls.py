"""An id joins whatever clocks and names say; arguments do before time; other arguments are another call."""

import json
from typing import Any

from evaluators.matching.tool_uses import tool_uses
from evaluators.model import Trace
from tests.support.conventions import AGENT, answered, call, model, ran, said, tool
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.table import for_each

AT = 200_000
"""When the model was asked, in milliseconds."""


ROOT = SpanSpec(id=1, attributes=AGENT, start=AT - 10, end=AT + 99)


def asking(number: int, at: int, *calls: dict[str, Any]) -> SpanSpec:
    return model(number, at, answer=said("", *calls))


ASKED_FOR_TWO = (
    ROOT,
    asking(2, AT, call("get_issue", "c0", n=0), call("get_issue", "c1", n=1)),
)
"""An agent, and its model, which asks for two issues at once."""


def issue(
    number: int, at: int, call_id: str | None = None, parent: int = 1, **given: Any
) -> SpanSpec:
    arguments, result = json.dumps(given), f"issue {given}"
    return ran(number, at, "get_issue", call_id, parent=parent, arguments=arguments, result=result)


def seen(trace: Trace) -> list[tuple[str | None, Any, Any]]:
    calls = sorted(trace.tool_calls, key=lambda c: str(c.id))
    return [(c.id, c.arguments, c.result) for c in calls]


def test_arguments_join_before_the_time_does() -> None:
    """Of two requests of one tool, the first left a span by a clock that is behind, the other none."""
    trace = trace_of(
        ROOT,
        asking(2, AT, call("get_issue", "c0", n=0)),
        issue(3, AT - 4_000, n=0),
        asking(4, AT + 5, call("get_issue", "c1", n=1)),
        issue(5, AT + 7, n=1),
    )

    assert [(c[0], c[1]) for c in seen(trace)] == [("c0", {"n": 0}), ("c1", {"n": 1})]


@for_each("skew", [-120_000, -4_000, 4_000])
def test_spans_that_say_a_name_alone_are_the_calls_of_that_name_whatever_their_clock(
    skew: int,
) -> None:
    trace = trace_of(*ASKED_FOR_TWO, *(ran(n, AT + skew + n, "get_issue") for n in (3, 4)))

    assert [(c[0], c[1]) for c in seen(trace)] == [("c0", {"n": 0}), ("c1", {"n": 1})]


@for_each("skew", [0, -120_000])
@for_each("order", ["abc", "cab", "bca"])
def test_parallel_spans_with_nothing_but_a_result_take_the_id_that_the_model_was_sent(
    order: str, skew: int
) -> None:
    at = AT + skew
    spans = [
        ran(10 + n, at + 2 + n, "search", result=f"found {q}", end=at + 9 - n)
        for n, q in enumerate(order)
    ]
    history = [json.loads(answered(f"c-{q}", f"found {q}")) for q in "abc"]
    sent = json.dumps([message for messages in history for message in messages])
    wanted = asking(2, AT, *(call("search", f"c-{q}", q=q) for q in "abc"))
    trace = trace_of(ROOT, wanted, *spans, model(3, AT + 15, sent))

    assert seen(trace) == [(f"c-{q}", {"q": q}, f"found {q}") for q in "abc"]


# --- a tool inside a tool --------------------------------------------------------------------------------------------


def test_chained_or_recursive_calls_with_other_arguments_are_calls_of_their_own() -> None:
    trace = trace_of(ROOT, *(issue(n, n, parent=n - 1, path=f"p{n}") for n in (2, 3, 4)))

    assert [c.arguments for c in trace.tool_calls] == [{"path": f"p{n}"} for n in (2, 3, 4)]


def test_a_layer_of_one_call_may_know_fewer_arguments() -> None:
    outer, inner = '{"city": "Oslo", "unit": "C"}', '{"city": "Oslo"}'
    for one, two in ((outer, inner), (inner, outer), (outer, outer)):
        layers = [
            ran(n, n, "f", parent=n - 1, end=9 - n, arguments=given)
            for n, given in ((2, one), (3, two))
        ]
        assert len(trace_of(SpanSpec(id=1, end=9), *layers).tool_calls) == 1


def to_server(number: int, name: str, **more: Any) -> SpanSpec:
    return ran(number, number, name, attributes={"mcp.method.name": "tools/call"}, **more)


@for_each("name", ["mcp__linear__get_issue", "linear_get_issue", "linear.getIssue", "callMcpTool"])
def test_what_an_mcp_client_sends_is_the_call_of_the_framework(name: str) -> None:
    sent = [to_server(n, "get_issue", parent=n - 1, kind=kind) for n, kind in ((3, 3), (4, 2))]
    trace = trace_of(SpanSpec(id=1, end=9), ran(2, 1, name, end=9), *sent)

    assert [c.name for c in trace.tool_calls] == [name]


def test_several_requests_to_servers_inside_one_tool_are_calls_of_their_own() -> None:
    names = ["run_script", "get_issue", "close_issue"]
    sent = [to_server(n, name, parent=2, kind=3) for n, name in enumerate(names[1:], 3)]
    trace = trace_of(SpanSpec(id=1, end=9), ran(2, 1, names[0], end=9), *sent)

    assert [c.name for c in trace.tool_calls] == names


def test_of_calls_that_start_together_the_one_that_ended_first_is_first() -> None:
    spans = ran(2, 1, "slow", end=9), ran(3, 1, "fast")
    assert [c.name for c in trace_of(SpanSpec(id=1, end=9), *spans).tool_calls] == ["fast", "slow"]


# --- spans of MCP servers, which export their side of a call ---------------------------------------------------------


SERVER, CLIENT = 2, 3


def mcp(kind: int, *, parent: int = 0, method: str = "tools/call") -> SpanSpec:
    given = {"mcp.method.name": method}
    given |= tool("get_weather") if method == "tools/call" else {}
    return SpanSpec(id=2, parent=parent, name=method, attributes=given, kind=kind, start=1)


WEB = SpanSpec(id=1, end=9, name="POST /mcp", kind=SERVER)


@for_each(
    "spans,calls,is_part",
    [
        # a server's answer whose caller is in another trace is no call: it is a piece of the caller's turn
        *(([mcp(SERVER, parent=parent)], 0, True) for parent in (0, 7)),
        ([WEB, mcp(SERVER, parent=1)], 0, True),
        *(
            ([mcp(SERVER, method=method)], 0, True)
            for method in ("initialize", "tools/list", "notifications/initialized")
        ),
        ([WEB], 0, False),
        # an agent inside a server's tool is a turn
        ([mcp(SERVER), ran(3, 2, "look_up", parent=2)], 1, False),
        # a client's call and a server below its caller are calls
        ([mcp(CLIENT)], 1, False),
        ([SpanSpec(id=1, end=9), mcp(SERVER, parent=1)], 1, False),
    ],
)
def test_what_of_a_server_is_a_call_or_a_turn(
    spans: list[SpanSpec], calls: int, is_part: bool
) -> None:
    trace = trace_of(*spans)

    assert (len(trace.tool_calls), trace.is_part, trace.is_turn) == (calls, is_part, calls > 0)


def test_a_call_has_the_server_that_its_spans_name() -> None:
    """By its name, or by the address of what was sent to it; the address of a tool of another kind is its own."""
    address, name = {"server.address": "mcp.internal"}, {"mcp.server.name": "weather"}
    sent = {"mcp.method.name": "tools/call"}
    for inner, wanted in (
        ({**sent, **address}, "mcp.internal"),
        ({"mcp.session.id": "s", **address}, "mcp.internal"),
        ({**sent, **address, **name}, "weather"),
        (address, None),
    ):
        own = ran(3, 2, "get_weather", parent=2, attributes=inner, kind=CLIENT)
        outer = ran(2, 1, "get_weather", end=9)
        (call,) = trace_of(SpanSpec(id=1, end=9), outer, own).tool_calls
        assert call.server == wanted
        (use,) = tool_uses((call,))
        assert use.server == (wanted or "")
