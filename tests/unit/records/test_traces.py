"""Traces in records: how they are fetched, which a judge reads, and that names in them keep services apart."""

import msgspec
import pytest

from collector.base.errors import Undecodable
from collector.log.port import TRACES, Position, Record
from collector.records.sessions import session_key
from collector.records.trace_views import decode_judged_trace
from collector.records.traces import TraceReader, previous_trace
from evaluators.dialects.read import read_trace
from evaluators.matching.text import LIMIT
from evaluators.model import AgentStep, ModelCall, ToolCall, Trace
from tests.support.api_records import trace
from tests.support.dialect_spans import SpanSpec, request


class Records:
    """Values by offset, and the positions that were fetched."""

    def __init__(self, **values: bytes) -> None:
        self._values = {int(name.removeprefix("at_")): value for name, value in values.items()}
        self.fetched: list[Position] = []

    async def get(self, position: Position) -> Record | None:
        self.fetched.append(position)
        value = self._values.get(position.offset)
        return None if value is None else Record(position=position, key=b"", value=value, time=0.0)


def decode(record: Record) -> str | None:
    value = record.value
    if value == b"broken":
        raise Undecodable("broken")
    return None if value == b"verdict" else value.decode()


async def test_a_record_is_fetched_once_from_its_partition() -> None:
    records = Records(at_7=b"trace")
    reader = TraceReader(records.get, 3, decode)

    assert [await reader.trace(7), await reader.trace(7)] == ["trace", "trace"]
    assert records.fetched == [Position(TRACES, 3, 7)]


async def test_an_expired_record_is_none_and_not_asked_for_again() -> None:
    records = Records()
    reader = TraceReader(records.get, 0, decode)

    assert [await reader.trace(7), await reader.trace(7)] == [None, None]
    assert len(records.fetched) == 1


async def test_a_record_that_is_no_trace_is_none() -> None:
    reader = TraceReader(Records(at_1=b"verdict", at_2=b"broken").get, 0, decode)

    assert [await reader.trace(1), await reader.trace(2)] == [None, None]


def test_history_shows_the_beginning_of_an_output() -> None:
    assert previous_trace("t", "d", None, "x" * 2 * LIMIT).output == "x" * LIMIT
    assert previous_trace("t", "d", "q", None).output is None


@pytest.mark.parametrize(
    ("made", "judged"),
    [
        (trace(tool_calls=()), False),
        (trace(tool_calls=(ToolCall(name="f"),)), True),
        (trace(tool_calls=(), model_calls=(ModelCall(span_id="1"),)), True),
        (trace(tool_calls=(), steps=(AgentStep(span_id="1"),)), True),
        (trace(unread="too_large"), False),
    ],
)
def test_a_judge_reads_turns(made: Trace, judged: bool) -> None:
    raw = msgspec.Raw(msgspec.msgpack.encode(made))

    assert decode_judged_trace(raw).is_judged is judged


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
