"""Codex's log events: what follows what in a conversation belongs together."""

import json
from dataclasses import replace
from typing import Any

from evaluators.model import Trace
from tests.support.agent_records import claude, codex
from tests.support.dialect_spans import SpanSpec, changed, span_id, trace_of
from tests.support.table import for_each
from tests.support.weather import one_call

ASK = "What is in the release notes?"
SAID = "Release 4.7."
COUNTS = {"input_token_count": "100", "output_token_count": "7"}
"""As texts; the others are numbers."""
USED = {"tool_name": "exec_command", "call_id": "t1"}


def ended(id_: int, at: int) -> SpanSpec:
    """The end of a model's answer."""
    counts = {**COUNTS, "cached_token_count": 8, "reasoning_token_count": 3}
    return codex(id_, "sse_event", at, event__kind="response.completed", **counts)


def used(output: str, **more: Any) -> SpanSpec:
    """A tool's result."""
    given = {"arguments": '{"cmd": "cat notes"}', "duration_ms": "246", "agent_name": "/root"}
    fields = {**USED, "success": "true", **given, **more}
    return codex(5, "tool_result", 1_600, output=output, **fields)


def printed(text: str, code: int = 0, chunk: str = "54b33c", seconds: str = "0.0489") -> str:
    return (
        f"Chunk ID: {chunk}\nWall time: {seconds} seconds\nProcess exited with code {code}\n"
        f"Original token count: 14\nOutput:\n{text}"
    )


PROMPT = codex(1, "user_prompt", 1_000, prompt=ASK)
REQUEST = codex(2, "api_request", 1_200, duration_ms="180", http__response__status_code=200)
END = ended(3, 1_205)
DECISION = codex(4, "tool_decision", 1_300, **USED, decision="approved")
DENIED = codex(4, "tool_decision", 1_300, call_id="t1", decision="denied", source="User")
RESULT = used(printed("release 4.7\n"))
LAST = ended(6, 1_900)
ANSWER = codex(7, "agent_response", 1_920, response=SAID, agent__type="main")
TURN = (PROMPT, REQUEST, END, DECISION, RESULT, LAST, ANSWER)


def errors(trace: Trace) -> list[str | None]:
    return [call.error for call in trace.model_calls]


def test_a_turn_is_read_from_records() -> None:
    trace = trace_of(*TURN)

    assert (trace.input, trace.output, trace.dialects) == (ASK, SAID, ("codex",))
    assert (trace.tokens.input, trace.tokens.output) == (200, 14)
    assert (trace.tokens.cached, trace.tokens.reasoning) == (16, 6)
    assert (trace.agent, trace.session_id) == ("codex", "c-1")
    assert trace.session_source == "conversation.id"
    assert (trace.root, trace.root_span_id) == ("parentless", span_id(1))
    call = one_call(trace)
    assert (call.arguments, call.result) == ({"cmd": "cat notes"}, "release 4.7\n")
    assert call.error is None
    assert [each.output for each in trace.model_calls] == [None, SAID]


def test_records_of_versions_that_name_their_module_as_scope_are_read() -> None:
    scope = "codex_otel::otel_event_manager"

    assert trace_of(*(replace(each, scope=scope) for each in TURN)) == trace_of(*TURN)


# --- calls of models -------------------------------------------------------------------------------------------------


@for_each("event,more", [("api_request", {}), ("websocket_request", {"success": "true"})])
def test_a_request_begins_its_call_also_over_a_connection_that_stays(
    event: str, more: dict[str, str]
) -> None:
    request = codex(2, event, 1_200, duration_ms="180", **more)

    first, last = trace_of(PROMPT, request, *TURN[2:]).model_calls

    assert (first.start_time_unix_nano, first.end_time_unix_nano) == (1_020_000_000, 1_205_000_000)
    assert last.start_time_unix_nano == 1_900_000_000


def test_a_request_whose_answer_broke_off_is_a_call() -> None:
    (call,) = trace_of(PROMPT, REQUEST).model_calls

    assert (call.tokens.input, call.error) == (None, None)


def test_every_attempt_that_failed_is_a_failed_call_of_the_model() -> None:
    failed = {"http__response__status_code": 500, "error__message": "http 500"}
    attempts = [codex(n, "api_request", 2_000 + n, attempt=n, **failed) for n in (8, 9)]

    trace = trace_of(PROMPT, REQUEST, END, *attempts)

    assert errors(trace) == [None, "http 500", "http 500"]
    assert (trace.status, trace.error) == ("error", "http 500")


@for_each("event", ["websocket_request", "websocket_connect"])
def test_a_connection_that_failed_is_a_call_that_failed(event: str) -> None:
    failed = codex(2, event, 1_200, success="false", error__message="connection reset")

    assert errors(trace_of(PROMPT, failed)) == ["connection reset"]


# --- calls of tools --------------------------------------------------------------------------------------------------


@for_each(
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


@for_each(
    "output,result",
    [
        (printed("unknown\n", chunk="1a", seconds="0.1"), "unknown\n"),
        (printed("unknown\n", chunk="2b", seconds="0.2"), "unknown\n"),
        ("Wall time: 0.0057 seconds\nOutput:\nsunny", "sunny"),
        (printed("Process exited with code 1\n"), "Process exited with code 1\n"),
    ],
)
def test_what_stands_above_an_output_is_no_part_of_the_result_and_what_it_prints_is_no_exit_code(
    output: str, result: str
) -> None:
    call = one_call(trace_of(PROMPT, used(output)))

    assert (call.result, call.error) == (result, None)


RULED = 'exec_command failed: CreateProcess { message: "Rejected(\\"`rm` rejected: no\\")" }'
UNREADABLE = "failed to parse function arguments: missing field `cmd`"


@for_each("output,by", [(RULED, "policy"), (UNREADABLE, None)])
def test_an_output_alone_says_whether_a_rule_refused_the_call_or_it_failed(
    output: str, by: str | None
) -> None:
    call = one_call(trace_of(PROMPT, used(output, success="false")))

    assert (call.rejected, call.error, call.result) == (by, output, None)


@for_each(
    "source,output,by",
    [
        ("User", "aborted", "user"),
        ("Config", "not allowed", "policy"),
        ("Config", 'Rejected("rejected by user")', "user"),
    ],
)
def test_a_refusal_that_was_decided_says_who_refused(source: str, output: str, by: str) -> None:
    denied = changed(DENIED, source=source)

    call = one_call(trace_of(PROMPT, denied, used(output, success="false")))

    assert (call.rejected, call.error) == (by, output)


def test_a_call_that_went_through_after_all_was_not_refused() -> None:
    assert one_call(trace_of(PROMPT, DENIED, RESULT)).rejected is None


def test_a_tool_that_takes_a_text_has_it_as_its_input() -> None:
    patch = "*** Begin Patch\n*** End Patch\n"

    assert one_call(trace_of(used("Done", arguments=patch))).arguments == {"input": patch}


def test_a_call_that_was_let_run_and_never_ended_is_unanswered() -> None:
    assert one_call(trace_of(*TURN[:4])).unanswered
    assert not one_call(trace_of(*TURN[:5])).unanswered


# --- words -----------------------------------------------------------------------------------------------------------


def test_an_answer_that_is_not_exported_is_a_gap_although_results_are_there() -> None:
    assert "no_content" in trace_of(*TURN[:-1]).gaps
    assert "no_content" not in trace_of(*TURN).gaps


def test_an_answer_that_was_cut_says_so() -> None:
    trace = trace_of(PROMPT, LAST, changed(ANSWER, response_truncated=True))

    assert (trace.output, trace.truncated) == (SAID, True)


def test_a_helper_works_in_a_conversation_of_its_own_under_its_name() -> None:
    spawn = codex(8, "agent_communication", 1_250, sender_thread_id="c-1", receiver_thread_id="h")
    helper = [
        replace(used("17 lines", agent_name="/root/count_lines", call_id="t9"), id=11),
        ended(9, 1_700),
        codex(10, "agent_response", 1_950, response="17.", agent__type="subagent"),
    ]

    trace = trace_of(
        *TURN,
        replace(spawn, scope="codex_otel.agent_communication"),
        *(changed(each, conversation__id="h") for each in helper),
    )

    assert trace.agents == ("codex", "count_lines")
    assert [call.agent for call in trace.tool_calls] == ["codex", "count_lines"]
    assert (trace.output, trace.session_id) == (SAID, "c-1")
    assert trace.tokens.input == 300


def test_the_prompt_for_a_title_is_no_question_and_the_title_no_answer() -> None:
    text = "Generate a concise, single-line task title for this: notes"
    asked = codex(8, "user_prompt", 1_001, prompt=text, conversation__id="t")
    title = codex(
        9, "agent_response", 1_990, response="Notes", agent__type="main", conversation__id="t"
    )

    trace = trace_of(*TURN, asked, title)

    assert (trace.input, trace.output) == (ASK, SAID)


# --- calls whose ids are shared, as some model servers give them, also of Claude Code --------------------------------


CLAUDE_PROMPT = claude(1, "user_prompt", 1_000, prompt="Go on.")
MANY = 3_000


def of_request(number: int, at: int) -> SpanSpec:
    return claude(number, "api_request", at, input_tokens=10, output_tokens=number, request_id="r")


def answer(number: int, at: int, text: str) -> SpanSpec:
    return claude(number, "assistant_response", at, response=text, request_id="r")


def test_model_calls_that_share_an_id_are_several_each_with_its_answer() -> None:
    first = of_request(2, 1_100), answer(3, 1_101, "One.")
    trace = trace_of(CLAUDE_PROMPT, *first, of_request(4, 1_200), answer(5, 1_201, "Two."))

    assert [call.output for call in trace.model_calls] == ["One.", "Two."]
    assert (trace.tokens.input, trace.tokens.output) == (20, 6)


def test_messages_of_one_request_are_one_answer() -> None:
    trace = trace_of(
        CLAUDE_PROMPT, of_request(2, 1_100), answer(3, 1_101, "One."), answer(4, 1_102, "Two.")
    )

    assert [call.output for call in trace.model_calls] == ["One.\n\nTwo."]


def with_id(number: int, event: str, at: int) -> SpanSpec:
    ended = {"success": "true", "output": "Output:\nok"} if event == "tool_result" else {}
    return codex(number, event, at, tool_name="f", call_id="call_0", decision="approved", **ended)


def test_tool_calls_that_share_an_id_are_several() -> None:
    events = ["tool_decision", "tool_result"] * 2
    records = (with_id(n, event, 1_000 + 100 * n) for n, event in enumerate(events, 2))

    assert len(trace_of(*records).tool_calls) == 2


def test_a_call_that_was_decided_on_twice_is_one() -> None:
    records = [with_id(2, "tool_decision", 1_100), with_id(3, "tool_decision", 1_150)]

    assert len(trace_of(*records, with_id(4, "tool_result", 1_200)).tool_calls) == 1


@for_each("event", ["assistant_response", "tool_decision"])
def test_however_many_records_share_an_id_they_are_read(event: str) -> None:
    same = {"request_id": "r", "tool_use_id": "t", "tool_name": "Bash", "response": "x" * 100}

    trace = trace_of(
        CLAUDE_PROMPT,
        *(claude(n, event, 1_000 + n, decision="accept", **same) for n in range(2, MANY)),
    )

    assert trace.spans == 2
