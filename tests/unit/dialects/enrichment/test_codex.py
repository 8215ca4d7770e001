"""Codex's log events: what follows what in a conversation belongs together."""

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from tests.support.agent_records import CODEX, codex
from tests.support.dialect_spans import SpanSpec, span_id, trace_of
from tests.support.weather import one_call

ASK = "What is in the release notes?"
PROMPT = codex(1, "user_prompt", 1_000, prompt=ASK)
REQUEST = codex(2, "api_request", 1_200, duration_ms="180", http__response__status_code=200)


def ended(id_: int, at: int, **more: Any) -> SpanSpec:
    """The end of a model's answer: its counts are texts and numbers."""
    counts: dict[str, Any] = {"input_token_count": "100", "output_token_count": "7"}
    counts |= {"cached_token_count": 8, "reasoning_token_count": 3}
    return codex(id_, "sse_event", at, event__kind="response.completed", **counts, **more)


def used(output: str, **more: Any) -> SpanSpec:
    """A tool's result."""
    fields: dict[str, Any] = {"tool_name": "exec_command", "call_id": "t1", "success": "true"}
    fields |= {"arguments": '{"cmd": "cat notes"}', "duration_ms": "246", "agent_name": "/root"}
    return codex(5, "tool_result", 1_600, output=output, **{**fields, **more})


def printed(text: str, code: int = 0, chunk: str = "54b33c", seconds: str = "0.0489") -> str:
    return (
        f"Chunk ID: {chunk}\nWall time: {seconds} seconds\nProcess exited with code {code}\n"
        f"Original token count: 14\nOutput:\n{text}"
    )


END = ended(3, 1_205)
DECISION = codex(
    4, "tool_decision", 1_300, tool_name="exec_command", call_id="t1", decision="approved"
)
RESULT = used(printed("release 4.7\n"))
LAST = ended(6, 1_900)
ANSWER = codex(7, "agent_response", 1_920, response="Release 4.7.", agent__type="main")
TURN = (PROMPT, REQUEST, END, DECISION, RESULT, LAST, ANSWER)


def test_a_turn_is_read_from_records() -> None:
    trace = trace_of(*TURN)

    assert (trace.input, trace.output) == (ASK, "Release 4.7.")
    assert (trace.tokens.input, trace.tokens.output) == (200, 14)
    assert (trace.tokens.cached, trace.tokens.reasoning) == (16, 6)
    assert (trace.agent, trace.session_id, trace.session_source) == (
        "codex",
        "c-1",
        "conversation.id",
    )
    assert (trace.root, trace.root_span_id) == ("parentless", span_id(1))
    call = one_call(trace)
    assert (call.arguments, call.result, call.error) == (
        {"cmd": "cat notes"},
        "release 4.7\n",
        None,
    )
    assert [each.output for each in trace.model_calls] == [None, "Release 4.7."]


def test_a_model_call_begins_with_its_request() -> None:
    first = trace_of(*TURN).model_calls[0]

    assert (first.start_time_unix_nano, first.end_time_unix_nano) == (1_020_000_000, 1_205_000_000)


def test_the_order_in_which_records_come_changes_nothing() -> None:
    shuffled = [*TURN]
    random.Random(7).shuffle(shuffled)

    assert trace_of(*shuffled) == trace_of(*TURN)


@pytest.mark.parametrize(
    "output",
    [
        printed("no such file\n", 1),
        "Exit code: 1\nWall time: 0.1 seconds\nOutput:\nno such file\n",
        json.dumps({"output": "no such file\n", "metadata": {"exit_code": 1}}),
    ],
)
def test_a_command_that_ends_with_an_exit_code_failed_though_it_is_called_a_success(
    output: str,
) -> None:
    call = one_call(trace_of(PROMPT, used(output)))

    assert (call.result, call.error) == ("no such file\n", "Process exited with code 1")
    assert (call.failed, call.rejected) == (True, None)


def test_an_exit_code_that_a_command_prints_is_none_of_its_own() -> None:
    call = one_call(trace_of(PROMPT, used(printed("Process exited with code 1\n"))))

    assert call.error is None


def test_the_same_output_is_the_same_result_whatever_stands_above_it() -> None:
    one = one_call(trace_of(used(printed("unknown\n", chunk="1a", seconds="0.1"))))
    other = one_call(trace_of(used(printed("unknown\n", chunk="2b", seconds="0.2"))))
    silent = one_call(trace_of(used("Wall time: 0.0057 seconds\nOutput:\nsunny")))

    assert one.result == other.result == "unknown\n"
    assert silent.result == "sunny"


def test_a_refusal_by_a_rule_stands_in_the_output_alone() -> None:
    text = 'exec_command failed: CreateProcess { message: "Rejected(\\"`rm` rejected: no\\")" }'

    call = one_call(trace_of(PROMPT, used(text, success="false")))

    assert (call.rejected, call.error, call.result) == ("policy", text, None)


@pytest.mark.parametrize(
    ("source", "output", "by"),
    [
        ("User", "aborted", "user"),
        ("Config", "not allowed", "policy"),
        ("Config", 'Rejected("rejected by user")', "user"),
    ],
)
def test_a_refusal_that_was_decided_says_who_refused(source: str, output: str, by: str) -> None:
    denied = codex(4, "tool_decision", 1_300, call_id="t1", decision="denied", source=source)

    call = one_call(trace_of(PROMPT, denied, used(output, success="false")))

    assert (call.rejected, call.error) == (by, output)


def test_a_call_that_went_through_after_all_was_not_refused() -> None:
    denied = codex(4, "tool_decision", 1_300, call_id="t1", decision="denied", source="User")

    assert one_call(trace_of(PROMPT, denied, RESULT)).rejected is None


def test_a_call_whose_arguments_cannot_be_read_failed() -> None:
    text = "failed to parse function arguments: missing field `cmd`"

    call = one_call(trace_of(used(text, success="false")))

    assert (call.error, call.rejected) == (text, None)


def test_a_tool_that_takes_a_text_has_it_as_its_input() -> None:
    patch = "*** Begin Patch\n*** End Patch\n"

    assert one_call(trace_of(used("Done", arguments=patch))).arguments == {"input": patch}


def test_every_attempt_that_failed_is_a_failed_call_of_the_model() -> None:
    failed = {"http__response__status_code": 500, "error__message": "http 500"}
    attempts = [codex(n, "api_request", 2_000 + n, attempt=n, **failed) for n in (8, 9)]

    trace = trace_of(PROMPT, REQUEST, END, *attempts)

    assert [call.error for call in trace.model_calls] == [None, "http 500", "http 500"]
    assert (trace.status, trace.error) == ("error", "http 500")


def test_a_request_whose_answer_broke_off_is_a_call() -> None:
    trace = trace_of(PROMPT, REQUEST)

    assert [call.tokens.input for call in trace.model_calls] == [None]
    assert trace.model_calls[0].error is None


def test_an_answer_that_is_not_exported_is_a_gap_although_results_are_there() -> None:
    assert "no_content" in trace_of(*TURN[:-1]).gaps
    assert "no_content" not in trace_of(*TURN).gaps


def test_an_answer_that_was_cut_says_so() -> None:
    cut = replace(ANSWER, attributes={**ANSWER.attributes, "response_truncated": True})

    trace = trace_of(PROMPT, LAST, cut)

    assert (trace.output, trace.truncated) == ("Release 4.7.", True)


def test_a_helper_works_in_a_conversation_of_its_own_under_its_name() -> None:
    spawn = codex(8, "agent_communication", 1_250, sender_thread_id="c-1", receiver_thread_id="h")
    spawn = replace(spawn, scope="codex_otel.agent_communication")
    helper = [
        used("17 lines", agent_name="/root/count_lines", call_id="t9"),
        replace(ended(9, 1_700), attributes={**END.attributes, "conversation.id": "h"}),
        codex(10, "agent_response", 1_950, response="17.", agent__type="subagent"),
    ]
    helper = [replace(e, attributes={**e.attributes, "conversation.id": "h"}) for e in helper]
    helper[0] = replace(helper[0], id=11)

    trace = trace_of(*TURN, spawn, *helper)

    assert trace.agents == ("codex", "count_lines")
    assert [call.agent for call in trace.tool_calls] == ["codex", "count_lines"]
    assert (trace.output, trace.session_id) == ("Release 4.7.", "c-1")
    assert trace.tokens.input == 300


def test_the_prompt_for_a_title_is_no_question_and_the_title_no_answer() -> None:
    text = "Generate a concise, single-line task title for this: notes"
    title = [
        codex(8, "user_prompt", 1_001, prompt=text),
        codex(9, "agent_response", 1_990, response="Notes", agent__type="main"),
    ]
    title = [
        replace(each, attributes={**each.attributes, "conversation.id": "t"}) for each in title
    ]

    trace = trace_of(*TURN, *title)

    assert (trace.input, trace.output) == (ASK, "Release 4.7.")


def test_a_hidden_prompt_is_no_question() -> None:
    assert (
        trace_of(
            replace(PROMPT, attributes={**PROMPT.attributes, "prompt": "[REDACTED]"}), LAST
        ).input
        is None
    )


def test_records_of_codex_are_its_own() -> None:
    assert PROMPT.scope == CODEX
    assert trace_of(*TURN).dialects == ("codex",)


def test_a_call_that_was_let_run_and_never_ended_is_unanswered() -> None:
    assert one_call(trace_of(PROMPT, REQUEST, END, DECISION)).unanswered
    assert not one_call(trace_of(PROMPT, REQUEST, END, DECISION, RESULT)).unanswered


def test_a_request_over_a_connection_that_stays_begins_its_call() -> None:
    request = codex(2, "websocket_request", 1_200, duration_ms="180", success="true")

    trace = trace_of(PROMPT, request, END, DECISION, RESULT, LAST, ANSWER)

    assert [call.start_time_unix_nano for call in trace.model_calls] == [
        1_020_000_000,
        1_900_000_000,
    ]


@pytest.mark.parametrize("event", ["websocket_request", "websocket_connect"])
def test_a_connection_that_failed_is_a_call_that_failed(event: str) -> None:
    failed = codex(2, event, 1_200, success="false", error__message="connection reset")

    trace = trace_of(PROMPT, failed)

    assert [call.error for call in trace.model_calls] == ["connection reset"]


def test_records_of_versions_that_name_their_module_as_scope_are_read() -> None:
    scope = "codex_otel::otel_event_manager"

    trace = trace_of(*(replace(each, scope=scope) for each in TURN))

    assert (trace.input, trace.output) == (ASK, "Release 4.7.")
    assert len(trace.tool_calls) == 1
