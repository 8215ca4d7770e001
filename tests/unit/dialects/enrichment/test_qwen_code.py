"""Qwen Code's records join its spans; without spans they stand for the calls."""

import json
from typing import Any

import pytest

from evaluators.model import Trace
from tests.support.agent_records import qwen, qwen_span
from tests.support.dialect_spans import SpanSpec, span_id, trace_of
from tests.support.weather import one_call

ASK = "Remove the old build folder."
COMMAND = {"command": "rm -rf build"}
HISTORY = [{"role": "user", "parts": [{"text": ASK}]}]
CALLED = {"functionCall": {"id": "c1", "name": "run", "args": COMMAND}}
RESULT = {"functionResponse": {"id": "c1", "name": "run", "response": {"output": "gone"}}}
AGAIN = [*HISTORY, {"role": "model", "parts": [CALLED]}, {"role": "user", "parts": [RESULT]}]
SPANS = (
    qwen_span(10, "interaction", 1_050, 2_200, gen_ai__operation__name="invoke_agent"),
    qwen_span(11, "llm_request", 1_100, 1_400, parent=10, gen_ai__operation__name="chat"),
    qwen_span(
        12,
        "tool",
        1_500,
        1_800,
        parent=10,
        gen_ai__operation__name="execute_tool",
        gen_ai__tool__name="run",
        call_id="c1",
    ),
    qwen_span(
        13,
        "tool.execution",
        1_550,
        1_790,
        parent=12,
        gen_ai__tool__name="run",
        tool__call_id="c1",
        execution_status="success",
    ),
    qwen_span(14, "llm_request", 1_900, 2_100, parent=10, gen_ai__operation__name="chat"),
)


def turn(*, of: bool = True, **call: Any) -> tuple[SpanSpec, ...]:
    """A prompt, a call of a tool and the answer; `of`: with the ids of the spans."""
    ids = (11, 12, 14) if of else (0, 0, 0)
    usage = {"input_token_count": 100, "output_token_count": 7}
    given = {"success": True, "decision": "auto_accept", "status": "success", **call}
    return (
        qwen(1, "user_prompt", 1_000, prompt=ASK),
        qwen(2, "api_request", 1_110, of=ids[0], request_text=json.dumps(HISTORY)),
        qwen(3, "api_response", 1_390, of=ids[0], model="qwen3", **usage),
        qwen(
            4,
            "tool_call",
            1_795,
            of=ids[1],
            call_id="c1",
            function_name="run",
            function_args=json.dumps(COMMAND),
            duration_ms=295,
            **given,
        ),
        qwen(5, "api_request", 1_910, of=ids[2], request_text=json.dumps(AGAIN)),
        qwen(6, "api_response", 2_090, of=ids[2], model="qwen3", response_text="Done.", **usage),
    )


def said(trace: Trace) -> dict[str, Any]:
    call = one_call(trace)
    return {
        "input": trace.input,
        "output": trace.output,
        "tokens": (trace.tokens.input, trace.tokens.output),
        "call": (call.id, call.name, call.arguments, call.result, call.error),
        "models": trace.models,
        "model calls": len(trace.model_calls),
        "agent": trace.agent,
        "session": trace.session_id,
        "root": (trace.root, trace.root_span_id),
    }


WHOLE = {
    "input": ASK,
    "output": "Done.",
    "tokens": (200, 14),
    "call": ("c1", "run", COMMAND, "gone", None),
    "models": ("qwen3",),
    "model calls": 2,
    "agent": "qwen-code",
    "session": "q-1",
    "root": ("parentless", span_id(1)),
}


@pytest.mark.parametrize("of", [True, False])
def test_a_turn_is_read_from_its_records_alone(of: bool) -> None:
    assert said(trace_of(*turn(of=of))) == WHOLE


def test_a_turn_of_records_and_spans_counts_everything_once() -> None:
    trace = trace_of(*turn(), *SPANS)

    assert said(trace) == WHOLE
    assert [call.span_id for call in trace.model_calls] == [span_id(11), span_id(14)]


def test_a_refused_call_is_found_by_its_id() -> None:
    refused: dict[str, Any] = {
        "success": False,
        "decision": None,
        "error_type": "execution_denied",
        "error": "denied by permission rules",
    }
    records = [
        replaced if replaced.id != 4 else _without_span(replaced) for replaced in turn(**refused)
    ]

    call = one_call(trace_of(*records, *SPANS[:3]))

    assert (call.span_id, call.rejected, call.error) == (
        span_id(12),
        "policy",
        "denied by permission rules",
    )


def _without_span(record: SpanSpec) -> SpanSpec:
    return SpanSpec(
        id=record.id,
        parent=999,
        name=record.name,
        start=record.start,
        end=record.end,
        scope=record.scope,
        attributes=record.attributes,
    )


def test_the_words_of_a_failure_are_the_records() -> None:
    """The spans say no more than that something failed."""
    failed = qwen_span(
        12,
        "tool",
        1_500,
        1_800,
        parent=10,
        gen_ai__operation__name="execute_tool",
        gen_ai__tool__name="run",
        call_id="c1",
    )
    records = turn(success=False, error="no such folder", error_type="shell_execute_error")

    assert one_call(trace_of(*records, *SPANS[:2], failed, *SPANS[3:])).error == "no such folder"


def test_a_context_before_a_persons_words_is_none_of_them() -> None:
    """Prompts that come as a stream leave no record of themselves: they are read from the request."""
    history = [
        {
            "role": "user",
            "parts": [{"text": "<system-reminder>\nBe kind.\n</system-reminder>"}, {"text": ASK}],
        }
    ]
    request = qwen(2, "api_request", 1_110, of=11, request_text=json.dumps(history))

    assert trace_of(request, *SPANS).input == ASK


@pytest.mark.parametrize("prompt", ["prompt_suggestion", "side-query:title"])
def test_what_the_program_asks_for_itself_is_no_answer(prompt: str) -> None:
    asked = qwen(40, "api_request", 2_500, prompt_id=prompt, request_text="What may follow?")
    said = qwen(41, "api_response", 2_600, prompt_id=prompt, response_text="run the tests")

    trace = trace_of(*turn(), *SPANS, asked, said)

    assert (trace.input, trace.output) == (ASK, trace_of(*turn(), *SPANS).output)
    assert len(trace.model_calls) == 1 + len(trace_of(*turn(), *SPANS).model_calls)
