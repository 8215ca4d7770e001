"""A trace that was acknowledged fits into one record of `traces`: its longest values are cut and marked."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from collector.log.port import MAX_RECORD
from collector.records.codec import encode
from collector.records.trace_size import cut_trace, fit_record, kept_spans
from collector.records.traces import TraceRecord
from evaluators.matching.repeats import repeats
from evaluators.matching.tool_calls import check_arguments
from evaluators.model import JSON, AgentStep, ToolCall, ToolDefinition, Trace

MB = 1 << 20
SCHEMA: JSON = {"type": "object", "required": ["text"]}


def trace(*calls: ToolCall, tools: Sequence[ToolDefinition] = (), output: str = "") -> Trace:
    return Trace(
        trace_id="1" * 32,
        service="desk-bot",
        agent="desk",
        session_id="s",
        session_source="session.id",
        tool_calls=calls,
        tools_offered=tuple(tools),
        output=output,
    )


def call(name: str, text: str) -> ToolCall:
    return ToolCall(name=name, arguments={"text": text})


def size(made: Trace) -> int:
    return len(msgspec.msgpack.encode(made))


def test_a_record_that_would_be_too_large_fits() -> None:
    pieces = [bytes(5 * MB), bytes(6 * MB)]
    large = trace(*(call("note", f"{n}" + "x" * 60_000) for n in range(250)), output="Done.")
    assert size(large) + 11 * MB > MAX_RECORD

    cut = fit_record(large, pieces)

    record = TraceRecord(trace=cut, spans=kept_spans(pieces), revision=0, seen=1.0)
    assert record.spans == tuple(pieces)
    assert len(encode(record)) < MAX_RECORD
    assert (cut.truncated, cut.gaps, cut.output) == (True, ("truncated",), "Done.")
    assert [each.name for each in cut.tool_calls] == ["note"] * 250


def test_steps_of_agents_are_cut_too() -> None:
    steps = tuple(AgentStep(span_id=f"{n:016x}", output="x" * 60_000) for n in range(250))
    large = replace(trace(), steps=steps)

    cut = cut_trace(large, MB)

    assert size(cut) <= MB
    assert len(cut.steps) == 250
    assert cut.truncated


def test_raw_spans_that_leave_no_room_are_left_out() -> None:
    pieces = [bytes(10 * MB), bytes(9 * MB)]

    cut = fit_record(trace(call("note", "x" * 60_000)), pieces)

    assert kept_spans(pieces) == ()
    assert cut.truncated
    assert cut.tool_calls[0].arguments == {"text": "x" * 60_000}


def test_what_is_left_of_arguments_is_not_judged_by_their_schema() -> None:
    tools = [
        ToolDefinition(name="note", parameters=SCHEMA),
        ToolDefinition(name="look", parameters=SCHEMA),
    ]
    made = trace(call("note", "x" * 60_000), call("note", "."), call("look", "."), tools=tools)

    cut = cut_trace(made, 20_000)

    assert isinstance(cut.tool_calls[0].arguments, str)
    assert [(judged.name, error) for judged, error in check_arguments(cut).judged] == [
        ("look", None)
    ]


def test_cut_arguments_that_differ_at_their_end_are_no_repeats() -> None:
    same, other = "x" * 60_000, "x" * 59_999 + "y"

    cut = cut_trace(trace(call("note", same), call("note", other), call("note", same)), 60_000)

    assert repeats(cut.tool_calls) == (cut.tool_calls[2],)


def test_a_text_is_cut_as_a_text_and_not_as_json() -> None:
    cut = cut_trace(trace(ToolCall(name="note", arguments="a" * 60_000)), 20_000)

    assert str(cut.tool_calls[0].arguments).startswith("a")


def test_a_trace_of_too_many_parts_is_unread_and_not_scored_for_a_part() -> None:
    many = trace(*(call("note", ".") for _ in range(20_000)))

    cut = cut_trace(many, 100_000)

    assert cut.unread == "too_large"
    assert (cut.service, cut.session_id, cut.tool_calls) == ("desk-bot", "s", ())
    assert size(cut) < 100_000


VALUES: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=2_000),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=40), inner, max_size=4)
    ),
    max_leaves=12,
)
CALLS = st.builds(
    ToolCall,
    name=st.sampled_from(("a", "b")),
    arguments=VALUES,
    result=VALUES,
    error=st.none() | st.text(max_size=2_000),
)


@given(st.lists(CALLS, max_size=20), st.text(max_size=5_000), st.integers(2_500, 20_000))
def test_whatever_it_holds_it_fits_and_says_that_it_was_cut(
    calls: list[ToolCall], output: str, room: int
) -> None:
    made = trace(*calls, output=output)

    cut = cut_trace(made, room)

    assert size(cut) <= room
    assert cut == made if size(made) <= room else cut.truncated
    assert cut.unread is not None or len(cut.tool_calls) == len(calls)
