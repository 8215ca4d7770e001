"""`spanwise inspect` for people."""

import io

import pytest

from collector.commands.inspect import trace_list
from evaluators.model import AgentStep, ToolCall, Trace
from tests.support.api_records import trace


def shown(*traces: Trace) -> str:
    stream = io.StringIO()
    trace_list(stream, traces)
    return stream.getvalue()


def test_each_thing_that_a_trace_has_is_a_line_under_its_name() -> None:
    (first, *rest) = shown(trace(1, gaps=("truncated",))).splitlines()

    assert first.split() == ["00000000", "agent", "planner", "of", "support-bot"]
    assert [line.split(maxsplit=1) for line in rest] == [
        ["session", "s-1"],
        ["input", "question 1"],
        ["output", "answer 1"],
        ["tools", "lookup"],
        ["gaps", "truncated"],
    ]


def test_a_trace_without_a_session_shows_none_and_two_are_parted_by_a_line() -> None:
    said = shown(trace(1, gaps=("no_session",), session_id="of-the-trace"), trace(2))

    assert "of-the-trace" not in said
    assert said.count("\n\n") == 1


def test_steps_of_agents_have_a_line_where_there_are_any() -> None:
    steps = (AgentStep(span_id="1", agent="Orchestrator"), AgentStep(span_id="2", agent="Surfer"))

    said = shown(trace(1, steps=steps, tool_calls=()), trace(2))

    assert "Orchestrator, Surfer" in said
    assert "steps" not in shown(trace(2))


def test_a_refused_call_is_not_marked_as_a_failed_one() -> None:
    failed = ToolCall(name="look", error="timed out")
    refused = ToolCall(name="drop", error="no", rejected="user")

    said = shown(trace(1, tool_calls=(failed, failed, refused)))

    assert "look! x 2, drop (refused)" in said


@pytest.mark.parametrize("length", [100, 1000])
def test_a_long_answer_is_folded_and_ends_within_three_lines(length: int) -> None:
    said = shown(trace(1, output="word " * length))

    lines = [line for line in said.splitlines() if "word" in line]
    assert len(lines) == 2
    assert lines[-1].endswith("…")
