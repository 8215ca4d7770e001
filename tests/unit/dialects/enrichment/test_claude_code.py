"""Claude Code's log events, alone and beside its beta spans."""

import json
from dataclasses import replace

from evaluators.model import Trace
from tests.support.agent_records import claude, claude_span
from tests.support.dialect_spans import SpanSpec, changed, span_id, trace_of
from tests.support.table import for_each
from tests.support.weather import one_call

ASK = "Remove the old build folder."
SAID = "It is gone."
COMMAND = {"command": "rm -r build", "description": "Delete it"}
PARAMETERS = json.dumps(
    {"bash_command": "rm", "full_command": "rm -r build", "description": "Delete it"}
)
BASH = {"tool_name": "Bash", "tool_use_id": "t1", "request_id": "r1"}
MODEL = "claude-sonnet-4-5"
FIRST = {"request_id": "r1", "input_tokens": 100, "output_tokens": 7}
SECOND = {"request_id": "r2", "input_tokens": 120, "output_tokens": 3}
RAN = {"success": "true", "duration_ms": "200", "tool_input_size_bytes": "64"}

PROMPT = claude(1, "user_prompt", 1_000, prompt=ASK, prompt_text=ASK)
ALLOWED = {"decision": "accept", "source": "config", "tool_parameters": PARAMETERS}
DECISION = claude(2, "tool_decision", 1_300, **BASH, **ALLOWED)
COST = {"model": MODEL, "cache_read_tokens": 8, "cost_usd": 0.25, "duration_ms": 350}
REQUEST = claude(3, "api_request", 1_400, **FIRST, **COST)
RESULT = claude(4, "tool_result", 1_700, **BASH, **RAN, tool_input=json.dumps(COMMAND))
LAST = claude(5, "api_request", 2_000, **SECOND, cost_usd=0.5)
ANSWER = claude(6, "assistant_response", 2_000, response=SAID, request_id="r2")
TURN = (PROMPT, DECISION, REQUEST, RESULT, LAST, ANSWER)

SPANS = (
    claude_span(21, "interaction", 990, 2_010, user_prompt=ASK),
    claude_span(22, "llm_request", 1_040, 1_410, parent=21, **FIRST),
    claude_span(23, "tool", 1_290, 1_710, parent=21, tool_use_id="t1", tool_name="Bash"),
    claude_span(24, "tool.execution", 1_310, 1_700, parent=23, tool_use_id="t1", success=True),
    claude_span(25, "llm_request", 1_800, 2_000, parent=21, **SECOND),
)


def beside(*records: SpanSpec) -> Trace:
    return trace_of(*(replace(each, parent=21) for each in records), *SPANS)


def errors(trace: Trace) -> list[str | None]:
    return [call.error for call in trace.model_calls]


def test_a_turn_is_read_from_records_alone() -> None:
    trace = trace_of(*TURN)

    assert (trace.input, trace.output) == (ASK, SAID)
    assert (trace.tokens.input, trace.tokens.output, trace.tokens.cached) == (220, 10, 8)
    assert (trace.cost_usd, trace.models) == (0.75, (MODEL,))
    assert (trace.agent, trace.session_id) == ("claude_code", "s-1")
    assert (trace.root, trace.root_span_id) == ("parentless", span_id(1))
    call = one_call(trace)
    assert (call.name, call.id, call.arguments, call.error) == ("Bash", "t1", COMMAND, None)
    # calls last from when they began until their record
    assert (call.start_time_unix_nano, call.end_time_unix_nano) == (1_300_000_000, 1_700_000_000)
    first, _ = trace.model_calls
    assert (first.start_time_unix_nano, first.end_time_unix_nano) == (1_050_000_000, 1_400_000_000)


def test_what_record_and_span_both_say_counts_once() -> None:
    trace = beside(*TURN)

    assert (trace.tokens.input, trace.tokens.output, len(trace.model_calls)) == (220, 10, 2)
    assert (trace.cost_usd, trace.input, trace.output) == (0.75, ASK, SAID)
    call = one_call(trace)
    assert (call.arguments, call.span_id) == (COMMAND, span_id(23))
    assert (trace.root, trace.root_span_id) == ("parentless", span_id(21))
    assert trace.spans == len(SPANS)


# --- calls of tools --------------------------------------------------------------------------------------------------


@for_each(
    "source,by",
    [("user_reject", "user"), ("user_abort", "user"), ("config", "policy"), ("hook", "policy")],
)
def test_a_refused_call_says_who_refused_it(source: str, by: str) -> None:
    refused = changed(DECISION, decision="reject", source=source)
    decision = {"decision_type": "reject", "decision_source": source}
    result = changed(RESULT, success="false", **decision)
    span = one_call(beside(PROMPT, refused))

    for call in (one_call(trace_of(PROMPT, refused, REQUEST)), one_call(trace_of(PROMPT, result))):
        assert (call.rejected, call.failed) == (by, False)
        assert call.error
    assert (span.rejected, span.arguments, span.span_id) == (by, COMMAND, span_id(23))


@for_each(
    "words,error", [({"error": "Shell command failed"}, "Shell command failed"), ({}, "ShellError")]
)
def test_a_call_that_failed_has_its_error(words: dict[str, str], error: str) -> None:
    failed = changed(RESULT, success="false", error_type="ShellError", **words)

    call = one_call(trace_of(PROMPT, DECISION, failed))

    assert (call.error, call.rejected) == (error, None)


def test_the_execution_inside_a_tool_says_that_it_failed() -> None:
    failed = changed(SPANS[3], success=False, error="timed out")

    assert one_call(trace_of(*SPANS[:3], failed)).error == "timed out"


def test_a_tool_of_a_server_has_the_name_by_which_the_model_called_it() -> None:
    parameters = json.dumps({"mcp_server_name": "weather", "mcp_tool_name": "forecast"})
    used = changed(RESULT, tool_name="mcp_tool", tool_parameters=parameters)

    assert one_call(trace_of(used)).name == "mcp__weather__forecast"


def test_the_default_that_is_added_to_an_edit_is_not_one_of_its_arguments() -> None:
    edit = {"file_path": "a.py", "old_string": "x", "new_string": "y"}
    used = changed(RESULT, tool_name="Edit", tool_input=json.dumps({**edit, "replace_all": False}))

    assert one_call(trace_of(used)).arguments == edit


@for_each("key", ["output", "content", "diff"])
def test_results_of_commands_files_and_edits_are_read_from_their_event(key: str) -> None:
    tool = replace(SPANS[2], events=(("tool.output", {"file_path": "a.py", key: "said"}),))

    assert one_call(trace_of(tool)).result == "said"


def test_a_call_that_was_let_run_and_never_ended_is_unanswered() -> None:
    assert one_call(trace_of(PROMPT, DECISION, REQUEST)).unanswered
    assert not one_call(trace_of(PROMPT, DECISION, RESULT)).unanswered
    assert not one_call(beside(PROMPT, DECISION)).unanswered


def test_without_ids_a_result_is_of_the_first_decision_that_has_none() -> None:
    first, result, second = (changed(each, "tool_use_id") for each in (DECISION, RESULT, DECISION))
    refused = changed(second, decision="reject", source="user_reject")

    trace = trace_of(
        PROMPT,
        first,
        replace(result, start=1_310, end=1_310),
        replace(refused, id=33, start=1_320),
    )

    assert [call.rejected for call in trace.tool_calls] == [None, "user"]


# --- words -----------------------------------------------------------------------------------------------------------


def test_what_is_said_on_the_way_to_a_tool_is_no_answer() -> None:
    said = claude(7, "assistant_response", 1_400, response="I delete it.", request_id="r1")

    trace = trace_of(*TURN, said)

    assert trace.output == SAID
    assert [call.output for call in trace.model_calls] == ["I delete it.", SAID]


def test_an_answer_stays_the_answer_when_the_agent_sets_out_again_and_does_not_come_back() -> None:
    later = [
        claude(7, "api_request", 3_000, request_id="r3", input_tokens=1, output_tokens=1),
        claude(8, "assistant_response", 3_000, response="I look again.", request_id="r3"),
        claude(9, "tool_decision", 3_001, decision="accept", tool_name="Bash", request_id="r3"),
    ]

    assert trace_of(*TURN, *later).output == SAID


@for_each("source", ["sdk", "repl_main_thread", "repl_main_thread:outputStyle:mine"])
def test_the_main_agents_words_are_the_answer_under_each_of_its_names(source: str) -> None:
    assert trace_of(*TURN[:-1], changed(ANSWER, query_source=source)).output == SAID


@for_each("source", ["generate_session_title", "prompt_suggestion", "away_summary"])
def test_what_the_program_asks_for_itself_is_no_answer(source: str) -> None:
    of = {"request_id": "r9", "query_source": source}
    own = claude(20, "api_request", 2_500, input_tokens=9, output_tokens=4, **of)
    said = claude(21, "assistant_response", 2_500, response="Old folder", **of)

    trace = trace_of(*TURN, own, said)

    assert trace.output == SAID
    assert (trace.tokens.input, trace.tokens.output) == (229, 14), "it costs all the same"
    assert trace_of(PROMPT, own, said).output is None


def test_a_command_that_the_program_answers_itself_is_no_question() -> None:
    command = {"prompt": "/compact", "command_name": "compact", "command_source": "builtin"}
    alone = claude(1, "user_prompt", 1_000, **command)

    assert trace_of(alone).input is None
    assert trace_of(alone, LAST).input == "/compact"


def test_an_answer_that_is_switched_off_is_a_gap_even_beside_arguments_of_tools() -> None:
    assert "no_content" in trace_of(*TURN[:-1]).gaps
    assert "no_content" not in trace_of(*TURN).gaps


def test_a_text_that_was_too_long_is_cut_and_does_not_say_so_itself() -> None:
    text = "Step 1. " * 100
    cut = changed(ANSWER, response=f"{text}\n\n[TRUNCATED - Content exceeds 60KB limit]")

    trace = trace_of(PROMPT, LAST, cut)

    assert (trace.output, trace.truncated) == (text.strip(), True)


def test_helpers_work_under_their_name_and_their_report_is_no_question() -> None:
    helper = {"request_id": "r7", "agent_id": "h1", "query_source": "agent:builtin:explorer"}
    done = {"agent_type": "explorer", "agent_id": "h1", "duration_ms": 300}
    trace = trace_of(
        PROMPT,
        claude(7, "api_request", 1_500, input_tokens=9, output_tokens=1, **helper),
        claude(8, "assistant_response", 1_500, response="17 lines.", **helper),
        claude(9, "tool_result", 1_400, tool_name="Bash", tool_use_id="t7", agent_id="h1"),
        claude(10, "subagent_completed", 1_600, **done),
        claude(11, "user_prompt", 1_650, prompt="<task-notification>\n<task-id>h1"),
        LAST,
        ANSWER,
    )

    assert trace.agents == ("claude_code", "explorer")
    assert one_call(trace).agent == "explorer"
    assert [call.agent for call in trace.model_calls] == ["explorer", "claude_code"]
    assert (trace.input, trace.output) == (ASK, SAID)
    assert trace.tokens.input == 129
    assert trace.spans == 5  # the prompt, two calls of models, one of a tool, the helper


def test_bodies_of_requests_bring_results_and_a_cut_one_no_tools() -> None:
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": COMMAND}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "done"}
    messages = [
        {"role": "user", "content": ASK},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
    body = json.dumps({"messages": messages, "tools": [{"name": "Bash"}, {"name": "Read"}]})
    answer = claude(12, "api_response_body", 2_000, body="{}", request_id="r2", request_body_id="b")

    def asked(text: str, **cut: str) -> Trace:
        given = {"body": text, "request_body_id": "b", **cut}
        return trace_of(*TURN, answer, claude(13, "api_request_body", 1_800, **given))

    whole, cut = asked(body), asked(body[:-20], body_truncated="true")
    assert one_call(whole).result == one_call(cut).result == "done"
    assert [tool.name for tool in whole.tools_offered] == ["Bash", "Read"]
    assert cut.tools_offered == ()
    assert (whole.truncated, cut.truncated) == (False, True)


# --- calls of models that failed -------------------------------------------------------------------------------------


def test_a_model_that_gave_up_is_one_failed_call() -> None:
    failed = {"error": "Internal server error", "status_code": 500, "model": MODEL}
    error = claude(7, "api_error", 2_000, **failed, attempt=4, request_id="r9", duration_ms=150)
    exhausted = claude(8, "api_retries_exhausted", 2_000, **failed, total_attempts=4)

    trace = trace_of(PROMPT, error, exhausted)

    assert errors(trace) == ["Internal server error"]
    assert (trace.status, trace.error) == ("error", "Internal server error")


REFUSAL = claude(20, "api_refusal", 2_001, request_id="r2")


def test_a_call_whose_answer_was_a_refusal_has_failed() -> None:
    trace = trace_of(*TURN[:-1], changed(REFUSAL, category="cyber"))

    assert (trace.status, trace.error) == ("error", "refusal: cyber")
    assert errors(trace) == [None, "refusal: cyber"]
    assert errors(trace_of(PROMPT, REFUSAL)) == ["refusal"], "a call without another record"


def test_a_refusal_after_which_another_model_was_asked_is_no_failure() -> None:
    assert trace_of(*TURN, changed(REFUSAL, server_fallback_hop=True)).status != "error"
