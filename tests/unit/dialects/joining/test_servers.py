"""Spans of MCP servers, which export their side of a call."""

from evaluators.matching.tool_uses import tool_uses
from tests.support.conventions import ran, tool
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.table import for_each

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
