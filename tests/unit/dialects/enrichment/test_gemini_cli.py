"""Gemini CLI's records join its spans; without spans they stand for the calls."""

import json
from typing import Any

import pytest

from evaluators.model import Trace
from tests.support.agent_records import gemini, gemini_span
from tests.support.dialect_spans import SpanSpec, span_id, trace_of
from tests.support.weather import one_call

ASK = "What is the release number?"
COMMAND = {"command": "cat NOTES.md", "description": "Read"}
SAID = "It is 4.7.11."


def chunks(*parts: dict[str, Any]) -> str:
    """A streamed answer: one chunk per part."""
    return json.dumps(
        [{"candidates": [{"content": {"role": "model", "parts": [p]}}]} for p in parts]
    )


def asked(*more: dict[str, Any]) -> str:
    return json.dumps([{"role": "user", "parts": [{"text": ASK}]}, *more])


CALL = {"functionCall": {"id": "run__fc1", "name": "run", "args": COMMAND}}
CALLED = {"role": "model", "parts": [{"functionCall": {**CALL["functionCall"], "id": "fc1"}}]}


def answered(output: str) -> dict[str, Any]:
    response = {"id": "fc1", "name": "run", "response": {"output": output}}
    return {"role": "user", "parts": [{"functionResponse": response}]}


def turn(output: str = "4.7.11", **call: Any) -> tuple[SpanSpec, ...]:
    """A prompt, a model call that asks for a command, the command, and the answer; records only."""
    return (
        gemini(1, "user_prompt", 1_000, prompt=ASK),
        gemini(2, "api_request", 1_100, model="gemini-2.5-pro", request_text=asked(), of=11),
        gemini(
            3,
            "api_response",
            1_400,
            model="gemini-2.5-pro",
            response_text=chunks(CALL),
            input_token_count=100,
            output_token_count=7,
            cached_content_token_count=8,
            thoughts_token_count=3,
        ),
        gemini(
            4,
            "tool_call",
            1_800,
            of=12,
            function_name="run",
            function_args=json.dumps(COMMAND),
            duration_ms=300,
            **{"success": True, "decision": "accept", **call},
        ),
        gemini(5, "api_request", 1_900, request_text=asked(CALLED, answered(output)), of=14),
        gemini(
            6,
            "api_response",
            2_100,
            response_text=chunks(*({"text": f"{word} "} for word in SAID.split())),
            input_token_count=120,
            output_token_count=5,
        ),
    )


SPANS = (
    gemini_span(11, "llm_call", 1_090, 1_410),
    gemini_span(12, "schedule_tool_calls", 1_420, 1_850),
    gemini_span(13, "tool_call", 1_500, 1_790, parent=12, gen_ai__tool__name="run"),
    gemini_span(14, "llm_call", 1_880, 2_110),
)


def said(trace: Trace) -> dict[str, Any]:
    call = one_call(trace)
    return {
        "input": trace.input,
        "output": (trace.output or "").strip(),
        "tokens": (trace.tokens.input, trace.tokens.output, trace.tokens.cached),
        "call": (call.name, call.arguments, call.result, call.error),
        "models": trace.models,
        "model calls": len(trace.model_calls),
        "agent": trace.agent,
        "session": trace.session_id,
        "root": (trace.root, trace.root_span_id),
    }


WHOLE = {
    "input": ASK,
    "output": SAID,
    "tokens": (220, 12, 8),
    "call": ("run", COMMAND, "4.7.11", None),
    "models": ("gemini-2.5-pro",),
    "model calls": 2,
    "agent": "gemini-cli",
    "session": "g-1",
    "root": ("parentless", span_id(1)),
}


def test_a_turn_is_read_from_its_records_alone() -> None:
    assert said(trace_of(*turn())) == WHOLE


def test_a_turn_of_records_and_spans_counts_everything_once() -> None:
    trace = trace_of(*turn(), *SPANS)

    assert said(trace) == WHOLE
    assert trace.spans == 5  # the prompt and four spans
    assert [call.span_id for call in trace.model_calls] == [span_id(11), span_id(14)]
    assert one_call(trace).span_id == span_id(13)


def test_in_a_terminal_the_span_of_the_prompt_is_the_root() -> None:
    prompt = gemini(1, "user_prompt", 1_050, prompt=ASK, of=10)
    spans = (gemini_span(10, "user_prompt", 1_000, 2_200), *SPANS)

    trace = trace_of(prompt, *turn()[1:], *spans)

    assert said(trace) == {**WHOLE, "root": ("parentless", span_id(10))}


def test_a_failed_command_is_recognised_by_its_output_and_by_the_metadata() -> None:
    output = "Output: no such file\nExit Code: 1"

    by_text = one_call(trace_of(*turn(f"{output}\nProcess Group PGID: 7"), *SPANS))
    by_mark = one_call(trace_of(*turn("no such file", metadata='{"isError": true}'), *SPANS))

    assert (by_text.error, by_mark.error) == (output, "no such file")


def test_an_exit_code_of_nought_is_no_failure() -> None:
    assert one_call(trace_of(*turn("done\nExit Code: 0"))).error is None


@pytest.mark.parametrize(
    ("outcome", "by"),
    [
        ({"success": False, "error_type": "policy_violation", "error": "denied"}, "policy"),
        ({"success": False, "decision": "reject", "error": "denied"}, "user"),
    ],
)
def test_a_refused_call_names_who_refused_it(outcome: dict[str, Any], by: str) -> None:
    call = one_call(trace_of(*turn(**outcome), *SPANS[:2]))

    assert (call.rejected, call.error) == (by, "denied")


def test_two_calls_of_one_batch_and_name_are_two() -> None:
    twice = gemini_span(15, "tool_call", 1_510, 1_795, parent=12, gen_ai__tool__name="run")
    again = gemini(
        7, "tool_call", 1_801, of=12, function_name="run", function_args='{"command": "ls"}'
    )

    trace = trace_of(*turn(), again, *SPANS, twice)

    assert [(c.span_id, c.arguments) for c in trace.tool_calls] == [
        (span_id(13), COMMAND),
        (span_id(15), {"command": "ls"}),
    ]


def test_a_model_error_ends_the_call_that_was_asked_last() -> None:
    failed = gemini(6, "api_error", 2_100, error="overloaded", status_code=503, duration_ms=200)

    trace = trace_of(*turn()[:5], failed)

    assert (trace.status, trace.error) == ("error", "overloaded")
    assert [call.error for call in trace.model_calls] == [None, "overloaded"]


def test_the_work_of_a_helper_is_the_helpers() -> None:
    helper = gemini_span(20, "agent_call", 1_500, 1_700, parent=13)
    inner = gemini_span(21, "llm_call", 1_550, 1_600, parent=20)
    started = gemini(8, "agent.start", 1_510, of=20, agent_name="generalist", agent_id="a")

    trace = trace_of(*turn(), *SPANS, helper, inner, started)

    assert trace.agents == ("gemini-cli", "generalist")
    assert {call.span_id: call.agent for call in trace.model_calls} == {
        span_id(11): "gemini-cli",
        span_id(14): "gemini-cli",
        span_id(21): "generalist",
    }


def test_a_call_cut_short_leaves_the_request() -> None:
    trace = trace_of(*turn()[:2])

    assert (trace.input, trace.output, len(trace.model_calls)) == (ASK, None, 1)


@pytest.mark.parametrize("role", ["utility_router", "utility_next_speaker"])
def test_what_the_program_asks_for_itself_is_no_answer(role: str) -> None:
    asked = gemini(40, "api_request", 2_500, role=role, request_text="Who speaks next?")
    chunk = {"candidates": [{"content": {"parts": [{"text": '{"next_speaker": "user"}'}]}}]}
    said = gemini(41, "api_response", 2_600, role=role, response_text=json.dumps([chunk]))

    trace = trace_of(*turn(), *SPANS, asked, said)

    assert (trace.input, trace.output) == (ASK, trace_of(*turn(), *SPANS).output)
    assert len(trace.model_calls) == 3
