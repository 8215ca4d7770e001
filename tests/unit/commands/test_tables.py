"""The tables of `spanwise evaluate` and `spanwise inspect`."""

import io
from typing import Any

import pytest

from collector.commands.inspect import trace_list
from collector.commands.signal_table import SignalTable
from evaluators.model import AgentStep, ToolCall, Trace
from tests.support.api_records import trace

SIGNAL: dict[str, Any] = {
    "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    "evaluator": "conversation_quality",
    "method": "deterministic",
    "outcome": "scored",
    "score": 0.75,
    "success": True,
    "reason": None,
    "error": None,
    "explanation": "3 of 4",
}
FAILED: dict[str, Any] = SIGNAL | {
    "method": "llm_judge",
    "outcome": "failed",
    "score": None,
    "success": None,
    "explanation": None,
    "error": {"type": "provider", "message": "the model said:\n  no such\tkey " + "k" * 60},
}
SKIPPED: dict[str, Any] = FAILED | {
    "trace_id": None,
    "outcome": "not_applicable",
    "error": None,
    "reason": "no_tool_definitions",
}


def lines(width: int) -> list[str]:
    stream = io.StringIO()
    table = SignalTable(stream, width, shows=lambda _: True)
    table.add("shop", "s-1 世界", [SIGNAL, FAILED, SKIPPED])
    table.add("shop", "s-2", [FAILED])
    table.end()
    return stream.getvalue().splitlines()


def test_a_row_says_what_was_scored_how_and_why_not() -> None:
    head, blank, session, scored, failed, skipped, *_ = lines(100)
    name = f"{'conversation_quality':<32}"

    assert head.split() == ["trace", "evaluator", "method", "score", "reason"]
    assert (blank, session) == ("", "shop: session s-1 世界")
    assert scored == f"4bf92f35 {name} deterministic 0.7500 pass    3 of 4"
    assert failed == f"4bf92f35 {name} llm_judge     failed         provider: the model said: no…"
    assert skipped == f"session  {name} llm_judge     not_applicable no_tool_definitions"


def test_a_narrow_terminal_gives_the_methods_room_to_the_reason() -> None:
    head, _, _, scored, failed, skipped, *_ = lines(80)

    assert head.split() == ["trace", "evaluator", "score", "reason"]
    assert scored == "4bf92f35 conversation_quality 0.7500 pass    3 of 4"
    assert failed == (
        "4bf92f35 conversation_quality failed         provider: the model said: no such …"
    )
    assert skipped == "session  conversation_quality not_applicable no_tool_definitions"


@pytest.mark.parametrize("width", [80, 120])
def test_every_row_is_one_line_of_the_terminal_and_an_error_is_shown_in_full_once(
    width: int,
) -> None:
    *rows, _blank, _count, before, error, after = lines(width)

    assert len(rows) == 9
    assert max(map(len, rows)) == width
    assert (before, after) == ("", "")
    said = f"the model said: no such key {'k' * 60} (2 times)"
    assert error == f"conversation_quality failed: provider: {said}"


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


def test_a_trace_without_a_session_shows_no_session_and_two_are_parted_by_a_line() -> None:
    said = shown(trace(1, gaps=("no_session",), session_id="of-the-trace"), trace(2))

    assert ("of-the-trace" in said, said.count("\n\n")) == (False, 1)


def test_steps_of_agents_have_a_line_where_there_are_any_and_calls_say_how_they_ended() -> None:
    steps = (AgentStep(span_id="1", agent="Orchestrator"), AgentStep(span_id="2", agent="Surfer"))
    failed = ToolCall(name="look", error="timed out")
    refused = ToolCall(name="drop", error="no", rejected="user")

    said = shown(trace(1, steps=steps, tool_calls=(failed, failed, refused)))

    assert "Orchestrator, Surfer" in said
    assert "look! x 2, drop (refused)" in said
    assert "steps" not in shown(trace(2))


@pytest.mark.parametrize("length", [100, 1000])
def test_a_long_answer_is_folded_and_ends_within_three_lines(length: int) -> None:
    said = shown(trace(1, output="word " * length))

    lines = [line for line in said.splitlines() if "word" in line]
    assert len(lines) == 2
    assert lines[-1].endswith("…")
