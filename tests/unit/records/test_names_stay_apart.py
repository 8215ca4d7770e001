"""NUL in names out of a trace: two services never share a session."""

import pytest

from collector.records.sessions import session_key
from evaluators.dialects.read import read_trace
from evaluators.model import Trace
from tests.support.dialect_spans import SpanSpec, request

TRACE = "0af7651916cd43dd8448eb211c80319c"


def read(service: str, session: str, also: str = "") -> Trace:
    attributes = {
        "gen_ai.operation.name": "chat",
        "session.id": session,
        "user.id": also,
        "spanwise.task.id": also,
    }
    body = request(
        SpanSpec(id=1, name="chat", attributes=attributes), resource={"service.name": service}
    )
    return read_trace([body], trace_id=TRACE, closed="root_ended")


def test_no_two_sessions_have_one_key() -> None:
    names = [("a", "b\0c"), ("a\0b", "c"), ("a\0", "b\0c"), ("a", "\0b\0c")]

    traces = [read(*each) for each in names]

    assert len({session_key(each.service, each.session_id) for each in traces}) == len(names)


@pytest.mark.parametrize("char", ["\0", "\x1b", "\x7f", "\x9b", "\u2028", "\u202e"])
def test_what_is_read_holds_no_control_characters(char: str) -> None:
    trace = read(f"a{char}b", f"c{char}d", f"e{char}f")

    assert (trace.service, trace.session_id) == ("a\ufffdb", "c\ufffdd")
    assert trace.user_id == trace.task_id == "e\ufffdf"


def test_names_are_cut_where_a_trace_is_read() -> None:
    long = "n" * 100_000
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": f"{long}\u202e"}
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": long}
    model = {"gen_ai.operation.name": "chat", "gen_ai.request.model": long}
    body = request(
        SpanSpec(id=1, name="agent", attributes=agent),
        SpanSpec(id=2, parent=1, name="chat", attributes=model),
        SpanSpec(id=3, parent=1, name="tool", attributes=tool),
        resource={"service.name": long, "service.version": long},
    )

    trace = read_trace([body], trace_id=TRACE, closed="root_ended")

    names = [trace.service, trace.agent, trace.agent_version or "", *trace.agents, *trace.models]
    names += [call.name for call in trace.tool_calls]
    assert [len(name) for name in names] == [128] * 6
