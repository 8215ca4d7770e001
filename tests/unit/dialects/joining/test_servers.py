"""Spans of MCP servers, which export their side of a call."""

from evaluators.matching.tool_uses import tool_uses
from tests.support.conventions import tool
from tests.support.dialect_spans import SpanSpec, trace_of

SERVER, CLIENT = 2, 3


def mcp(kind: int, *, parent: int = 0, method: str = "tools/call") -> SpanSpec:
    given = {"mcp.method.name": method}
    given |= tool("get_weather") if method == "tools/call" else {}
    return SpanSpec(id=2, parent=parent, name=method, attributes=given, kind=kind, start=1)


def test_a_servers_answer_whose_caller_is_in_another_trace_is_no_call() -> None:
    for parent in (0, 7):
        trace = trace_of(mcp(SERVER, parent=parent))
        assert (trace.tool_calls, trace.is_turn) == ((), False)


def test_a_servers_trace_is_a_piece_of_its_callers_turn() -> None:
    web = SpanSpec(id=1, end=9, name="POST /mcp", kind=SERVER)
    for specs in (
        (mcp(SERVER),),
        (web, mcp(SERVER, parent=1)),
        (mcp(SERVER, method="initialize"),),
    ):
        trace = trace_of(*specs)
        assert (trace.tool_calls, trace.is_turn, trace.is_part) == ((), False, True)
    assert not trace_of(web).is_part


def test_an_agent_inside_a_servers_tool_is_a_turn() -> None:
    work = SpanSpec(id=3, parent=2, start=2, attributes=tool("look_up"))
    trace = trace_of(mcp(SERVER), work)
    assert (len(trace.tool_calls), trace.is_part) == (1, False)


def test_what_a_server_is_asked_beside_calls_is_no_turn() -> None:
    for method in ("initialize", "tools/list", "notifications/initialized"):
        assert not trace_of(mcp(SERVER, method=method)).is_turn


def test_a_clients_call_and_a_server_below_its_caller_are_calls() -> None:
    assert len(trace_of(mcp(CLIENT)).tool_calls) == 1
    assert len(trace_of(SpanSpec(id=1, end=9), mcp(SERVER, parent=1)).tool_calls) == 1


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
        outer = SpanSpec(id=2, parent=1, attributes=tool("get_weather"), start=1, end=9)
        own = SpanSpec(
            id=3, parent=2, attributes=tool("get_weather", **inner), start=2, kind=CLIENT
        )
        (call,) = trace_of(SpanSpec(id=1, end=9), outer, own).tool_calls
        assert call.server == wanted
        (use,) = tool_uses((call,))
        assert use.server == (wanted or "")
