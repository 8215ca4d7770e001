"""Claude Code's log events, alone and beside its beta spans."""

import json
import random
from dataclasses import replace

import pytest

from evaluators.model import Trace
from tests.support.agent_records import claude, claude_span
from tests.support.dialect_spans import SpanSpec, span_id, trace_of
from tests.support.weather import one_call

ASK = "Remove the old build folder."
PROMPT = claude(1, "user_prompt", 1_000, prompt=ASK, prompt_text=ASK)
COMMAND = {"command": "rm -r build", "description": "Delete it"}
PARAMETERS = json.dumps(
    {"bash_command": "rm", "full_command": "rm -r build", "description": "Delete it"}
)
DECISION = claude(
    2,
    "tool_decision",
    1_300,
    decision="accept",
    source="config",
    tool_name="Bash",
    tool_use_id="t1",
    tool_parameters=PARAMETERS,
    request_id="r1",
)
REQUEST = claude(
    3,
    "api_request",
    1_400,
    model="claude-sonnet-4-5",
    input_tokens=100,
    output_tokens=7,
    cache_read_tokens=8,
    cost_usd=0.25,
    duration_ms=350,
    request_id="r1",
)
RESULT = claude(
    4,
    "tool_result",
    1_700,
    tool_name="Bash",
    tool_use_id="t1",
    success="true",
    duration_ms="200",
    tool_input=json.dumps(COMMAND),
    tool_input_size_bytes="64",
    request_id="r1",
)
LAST = claude(
    5, "api_request", 2_000, input_tokens=120, output_tokens=3, cost_usd=0.5, request_id="r2"
)
ANSWER = claude(6, "assistant_response", 2_000, response="It is gone.", request_id="r2")
TURN = (PROMPT, DECISION, REQUEST, RESULT, LAST, ANSWER)


def test_a_turn_is_read_from_records_alone() -> None:
    trace = trace_of(*TURN)

    assert (trace.input, trace.output) == (ASK, "It is gone.")
    assert (trace.tokens.input, trace.tokens.output, trace.tokens.cached) == (220, 10, 8)
    assert trace.cost_usd == 0.75
    assert trace.models == ("claude-sonnet-4-5",)
    assert (trace.agent, trace.session_id) == ("claude_code", "s-1")
    assert (trace.root, trace.root_span_id) == ("parentless", span_id(1))
    call = one_call(trace)
    assert (call.name, call.id, call.arguments, call.error) == ("Bash", "t1", COMMAND, None)
    assert len(trace.model_calls) == 2


def test_calls_last_from_when_they_began_until_their_record() -> None:
    trace = trace_of(*TURN)

    first = trace.model_calls[0]
    assert (first.start_time_unix_nano, first.end_time_unix_nano) == (1_050_000_000, 1_400_000_000)
    call = one_call(trace)
    assert (call.start_time_unix_nano, call.end_time_unix_nano) == (1_300_000_000, 1_700_000_000)


def test_the_order_in_which_records_come_changes_nothing() -> None:
    shuffled = [*TURN]
    random.Random(7).shuffle(shuffled)

    assert trace_of(*shuffled) == trace_of(*TURN)


def test_without_a_result_the_arguments_of_a_command_are_those_that_were_decided_on() -> None:
    call = one_call(trace_of(PROMPT, DECISION))

    assert (call.arguments, call.result, call.error) == (COMMAND, None, None)


@pytest.mark.parametrize(
    ("source", "by"),
    [("user_reject", "user"), ("user_abort", "user"), ("config", "policy"), ("hook", "policy")],
)
def test_a_refused_call_says_who_refused_it(source: str, by: str) -> None:
    changed = {**DECISION.attributes, "decision": "reject", "source": source}

    call = one_call(trace_of(PROMPT, replace(DECISION, attributes=changed), REQUEST))

    assert (call.rejected, call.failed) == (by, False)
    assert call.error


@pytest.mark.parametrize(
    ("words", "error"),
    [({"error": "Shell command failed"}, "Shell command failed"), ({}, "ShellError")],
)
def test_a_call_that_failed_has_its_error(words: dict[str, str], error: str) -> None:
    changed = {**RESULT.attributes, "success": "false", "error_type": "ShellError", **words}

    call = one_call(trace_of(PROMPT, DECISION, replace(RESULT, attributes=changed)))

    assert (call.error, call.rejected) == (error, None)


def test_a_tool_of_a_server_has_the_name_by_which_the_model_called_it() -> None:
    parameters = json.dumps({"mcp_server_name": "weather", "mcp_tool_name": "forecast"})
    changed = {**RESULT.attributes, "tool_name": "mcp_tool", "tool_parameters": parameters}

    assert one_call(trace_of(replace(RESULT, attributes=changed))).name == "mcp__weather__forecast"


def test_the_default_that_is_added_to_an_edit_is_none_of_its_arguments() -> None:
    edit = {"file_path": "a.py", "old_string": "x", "new_string": "y"}
    changed = {
        **RESULT.attributes,
        "tool_name": "Edit",
        "tool_input": json.dumps({**edit, "replace_all": False}),
    }

    assert one_call(trace_of(replace(RESULT, attributes=changed))).arguments == edit


def test_what_is_said_on_the_way_to_a_tool_is_no_answer() -> None:
    said = claude(7, "assistant_response", 1_400, response="I delete it.", request_id="r1")

    assert trace_of(*TURN, said).output == "It is gone."
    assert [call.output for call in trace_of(*TURN, said).model_calls] == [
        "I delete it.",
        "It is gone.",
    ]


def test_an_answer_stays_the_answer_when_the_agent_sets_out_again_and_does_not_come_back() -> None:
    later = [
        claude(7, "api_request", 3_000, request_id="r3", input_tokens=1, output_tokens=1),
        claude(8, "assistant_response", 3_000, response="I look again.", request_id="r3"),
        claude(9, "tool_decision", 3_001, decision="accept", tool_name="Bash", request_id="r3"),
    ]

    assert trace_of(*TURN, *later).output == "It is gone."


def test_hidden_texts_are_not_exported() -> None:
    hidden = [
        replace(PROMPT, attributes={**PROMPT.attributes, "prompt": "<REDACTED>"}),
        replace(ANSWER, attributes={**ANSWER.attributes, "response": "<REDACTED>"}),
    ]

    trace = trace_of(*hidden, LAST)

    assert (trace.input, trace.output) == (None, None)
    assert "no_content" in trace.gaps


def test_an_answer_that_is_switched_off_is_a_gap_even_beside_arguments_of_tools() -> None:
    assert "no_content" in trace_of(PROMPT, DECISION, REQUEST, RESULT, LAST).gaps
    assert "no_content" not in trace_of(*TURN).gaps


def test_a_text_that_was_too_long_is_cut_and_does_not_say_so_itself() -> None:
    text = "Step 1. " * 100 + "\n\n[TRUNCATED - Content exceeds 60KB limit]"
    long = replace(ANSWER, attributes={**ANSWER.attributes, "response": text})

    trace = trace_of(PROMPT, LAST, long)

    assert trace.output == ("Step 1. " * 100).strip()
    assert trace.truncated


def test_a_model_that_gave_up_is_one_failed_call() -> None:
    failed = {"error": "Internal server error", "status_code": 500, "model": "claude-sonnet-4-5"}
    error = claude(7, "api_error", 2_000, **failed, attempt=4, request_id="r9", duration_ms=150)
    exhausted = claude(8, "api_retries_exhausted", 2_000, **failed, total_attempts=4)

    trace = trace_of(PROMPT, error, exhausted)

    assert [call.error for call in trace.model_calls] == ["Internal server error"]
    assert (trace.status, trace.error) == ("error", "Internal server error")


def test_helpers_work_under_their_name_and_their_report_is_no_question() -> None:
    helper = {"agent_id": "h1", "query_source": "agent:builtin:explorer"}
    trace = trace_of(
        PROMPT,
        claude(7, "api_request", 1_500, input_tokens=9, output_tokens=1, request_id="r7", **helper),
        claude(8, "assistant_response", 1_500, response="17 lines.", request_id="r7", **helper),
        claude(9, "tool_result", 1_400, tool_name="Bash", tool_use_id="t7", agent_id="h1"),
        claude(
            10, "subagent_completed", 1_600, agent_type="explorer", agent_id="h1", duration_ms=300
        ),
        claude(11, "user_prompt", 1_650, prompt="<task-notification>\n<task-id>h1"),
        LAST,
        ANSWER,
    )

    assert trace.agents == ("claude_code", "explorer")
    assert one_call(trace).agent == "explorer"
    assert [call.agent for call in trace.model_calls] == ["explorer", "claude_code"]
    assert (trace.input, trace.output) == (ASK, "It is gone.")
    assert trace.tokens.input == 129
    assert trace.spans == 5  # the prompt, two calls of models, one of a tool, the helper


def test_a_command_that_the_program_answers_itself_is_no_question() -> None:
    command = {"prompt": "/compact", "command_name": "compact", "command_source": "builtin"}
    alone = claude(1, "user_prompt", 1_000, **command)

    assert trace_of(alone).input is None
    assert trace_of(alone, LAST).input == "/compact"


# --- beside beta spans -----------------------------------------------------------------------------------------------

SPANS = (
    claude_span(21, "interaction", 990, 2_010, user_prompt=ASK),
    claude_span(
        22,
        "llm_request",
        1_040,
        1_410,
        parent=21,
        request_id="r1",
        input_tokens=100,
        output_tokens=7,
    ),
    claude_span(23, "tool", 1_290, 1_710, parent=21, tool_use_id="t1", tool_name="Bash"),
    claude_span(24, "tool.execution", 1_310, 1_700, parent=23, tool_use_id="t1", success=True),
    claude_span(
        25,
        "llm_request",
        1_800,
        2_000,
        parent=21,
        request_id="r2",
        input_tokens=120,
        output_tokens=3,
    ),
)


def beside(*records: SpanSpec) -> Trace:
    return trace_of(*(replace(each, parent=21) for each in records), *SPANS)


def test_what_record_and_span_both_say_counts_once() -> None:
    trace = beside(*TURN)

    assert (trace.tokens.input, trace.tokens.output, len(trace.model_calls)) == (220, 10, 2)
    assert trace.cost_usd == 0.75
    assert (trace.input, trace.output) == (ASK, "It is gone.")
    call = one_call(trace)
    assert (call.arguments, call.span_id) == (COMMAND, span_id(23))
    assert (trace.root, trace.root_span_id) == ("parentless", span_id(21))
    assert trace.spans == len(SPANS)


def test_the_records_that_lent_words_are_part_of_the_traces_digest() -> None:
    assert len({beside().digest, beside(PROMPT).digest, beside(*TURN).digest}) == 3


def test_a_refusal_reaches_the_span_of_the_tool() -> None:
    changed = {**DECISION.attributes, "decision": "reject", "source": "user_reject"}

    call = one_call(beside(PROMPT, replace(DECISION, attributes=changed)))

    assert (call.rejected, call.arguments, call.span_id) == ("user", COMMAND, span_id(23))


def test_results_of_commands_files_and_edits_are_read_from_their_event() -> None:
    for key in ("output", "content", "diff"):
        tool = replace(SPANS[2], events=(("tool.output", {"file_path": "a.py", key: "said"}),))
        assert one_call(trace_of(tool)).result == "said"


def test_bodies_of_requests_bring_results_and_a_cut_one_no_tools() -> None:
    messages = [
        {"role": "user", "content": ASK},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": COMMAND}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "done"}],
        },
    ]
    body = json.dumps({"messages": messages, "tools": [{"name": "Bash"}, {"name": "Read"}]})
    answer = claude(12, "api_response_body", 2_000, body="{}", request_id="r2", request_body_id="b")

    def asked(text: str, **cut: str) -> Trace:
        return trace_of(
            *TURN,
            answer,
            claude(13, "api_request_body", 1_800, body=text, request_body_id="b", **cut),
        )

    whole, cut = asked(body), asked(body[:-20], body_truncated="true")
    assert one_call(whole).result == one_call(cut).result == "done"
    assert [tool.name for tool in whole.tools_offered] == ["Bash", "Read"]
    assert cut.tools_offered == ()
    assert (whole.truncated, cut.truncated) == (False, True)


def test_a_call_that_was_let_run_and_never_ended_is_unanswered() -> None:
    assert one_call(trace_of(PROMPT, DECISION, REQUEST)).unanswered
    assert not one_call(trace_of(PROMPT, DECISION, RESULT)).unanswered
    assert not one_call(beside(PROMPT, DECISION)).unanswered


def test_without_ids_a_result_is_of_the_first_decision_that_has_none() -> None:
    def nameless(each: SpanSpec, number: int, **more: str) -> SpanSpec:
        changed = {k: v for k, v in each.attributes.items() if k != "tool_use_id"}
        return replace(each, id=number, attributes={**changed, **more})

    trace = trace_of(
        PROMPT,
        nameless(DECISION, 31),
        replace(nameless(RESULT, 32), start=1_310, end=1_310),
        replace(nameless(DECISION, 33, decision="reject", source="user_reject"), start=1_320),
    )

    assert [call.rejected for call in trace.tool_calls] == [None, "user"]


def test_a_result_alone_can_say_that_the_call_was_refused() -> None:
    more = {"success": "false", "decision_type": "reject", "decision_source": "user_reject"}

    call = one_call(trace_of(PROMPT, replace(RESULT, attributes={**RESULT.attributes, **more})))

    assert (call.rejected, call.failed) == ("user", False)


@pytest.mark.parametrize("source", ["generate_session_title", "prompt_suggestion", "away_summary"])
def test_what_the_program_asks_for_itself_is_no_answer(source: str) -> None:
    own = claude(
        20,
        "api_request",
        2_500,
        input_tokens=9,
        output_tokens=4,
        request_id="r9",
        query_source=source,
    )
    said = claude(
        21, "assistant_response", 2_500, response="Old folder", request_id="r9", query_source=source
    )

    trace = trace_of(*TURN, own, said)

    assert trace.output == "It is gone."
    assert (trace.tokens.input, trace.tokens.output) == (229, 14), "it costs all the same"
    assert trace_of(PROMPT, own, said).output is None


@pytest.mark.parametrize("source", ["sdk", "repl_main_thread", "repl_main_thread:outputStyle:mine"])
def test_the_main_agents_words_are_the_answer_under_each_of_its_names(source: str) -> None:
    changed = {**ANSWER.attributes, "query_source": source}

    assert trace_of(*TURN[:-1], replace(ANSWER, attributes=changed)).output == "It is gone."


def test_a_call_whose_answer_was_a_refusal_has_failed() -> None:
    refusal = claude(20, "api_refusal", 2_001, request_id="r2", category="cyber")

    trace = trace_of(*TURN[:-1], refusal)

    assert (trace.status, trace.error) == ("error", "refusal: cyber")
    assert [call.error for call in trace.model_calls] == [None, "refusal: cyber"]


def test_a_refusal_after_which_another_model_was_asked_is_no_failure() -> None:
    hop = claude(20, "api_refusal", 2_001, request_id="r2", server_fallback_hop=True)

    assert trace_of(*TURN, hop).status != "error"


def test_a_refused_call_without_a_record_of_its_own_is_a_call() -> None:
    trace = trace_of(PROMPT, claude(20, "api_refusal", 2_001, request_id="r2"))

    assert [call.error for call in trace.model_calls] == ["refusal"]
