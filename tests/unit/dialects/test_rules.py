"""The rules all dialects share: roots, sessions, sums, joins, errors, gaps."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluators.dialects.content.sessions import Keys
from evaluators.dialects.read import read_trace
from evaluators.dialects.show import show
from evaluators.digest import trace_digest
from evaluators.model import Tokens, Trace
from evaluators.prices import cost
from tests.support.dialect_spans import TRACE_ID, SpanSpec, request, span_id, trace_of

CHAT = {"gen_ai.operation.name": "chat"}
AGENT = {"gen_ai.operation.name": "invoke_agent"}
REMOTE = 0x300
CONTRACT = """
trace_id service agent agents session_id session_source user_id task_id input output tokens cost_usd models
tools_offered tool_calls status error root closed dialects spans truncated gaps
"""


def said(text: str, *calls: dict[str, Any]) -> str:
    parts: list[dict[str, Any]] = [{"type": "text", "content": text}] if text else []
    return json.dumps([{"role": "assistant", "parts": [*parts, *calls]}])


def asked(*texts: str) -> str:
    return json.dumps(
        [{"role": "user", "parts": [{"type": "text", "content": text}]} for text in texts]
    )


def call(name: str, identifier: str | None = None, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": identifier, "name": name, "arguments": arguments}


def answered(identifier: str, response: Any) -> str:
    part = {"type": "tool_call_response", "id": identifier, "response": response}
    return json.dumps([{"role": "tool", "parts": [part]}])


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, **more}


# --- reading ---------------------------------------------------------------------------------------------------------


def test_no_span_of_the_trace_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="no span of trace"):
        read_trace([request(SpanSpec(id=1))], trace_id="ff" * 16, closed="idle")


def test_spans_of_other_traces_are_passed_over() -> None:
    other = request(SpanSpec(id=9), trace_id="ff" * 16)

    assert read_trace([other, request(SpanSpec(id=1))], trace_id=TRACE_ID, closed="idle").spans == 1


def test_of_a_span_sent_twice_the_first_copy_counts() -> None:
    first = request(SpanSpec(id=1, attributes={"session.id": "one"}))
    second = request(SpanSpec(id=1, attributes={"session.id": "two"}))

    assert read_trace([first, second], trace_id=TRACE_ID, closed="idle").session_id == "one"


def test_a_broken_piece_marks_the_trace_truncated() -> None:
    trace = read_trace([request(SpanSpec(id=1)), b"\xff\xff"], trace_id=TRACE_ID, closed="idle")

    assert (trace.spans, trace.truncated, "truncated" in trace.gaps) == (1, True, True)


def test_dropped_attributes_mark_the_trace_truncated() -> None:
    assert trace_of(SpanSpec(id=1, dropped=3)).truncated
    assert not trace_of(SpanSpec(id=1)).truncated


def test_the_digest_is_that_of_the_span_ids() -> None:
    trace = trace_of(SpanSpec(id=1), SpanSpec(id=2, parent=1))

    assert trace.digest == trace_digest([span_id(1), span_id(2)])


# --- root ------------------------------------------------------------------------------------------------------------


def test_the_root_is_the_span_without_parent() -> None:
    trace = trace_of(SpanSpec(id=1, start=5), SpanSpec(id=2, parent=1, start=1))

    assert (trace.root, trace.root_span_id) == ("parentless", span_id(1))


def test_under_a_remote_parent_the_earliest_such_span_is_the_local_root() -> None:
    trace = trace_of(
        SpanSpec(id=2, parent=7, start=3, flags=REMOTE),
        SpanSpec(id=3, parent=7, start=1, flags=REMOTE),
    )

    assert (trace.root, trace.root_span_id) == ("local", span_id(3))


@pytest.mark.parametrize("flags", [0, 0x100, 0x200])
def test_a_missing_parent_that_is_not_marked_remote_is_no_root(flags: int) -> None:
    trace = trace_of(SpanSpec(id=2, parent=7, flags=flags))

    assert (trace.root, trace.root_span_id, "no_root" in trace.gaps) == ("missing", None, True)


def test_a_ring_of_parents_is_survived() -> None:
    trace = trace_of(
        SpanSpec(id=1, parent=2, attributes=CHAT),
        SpanSpec(id=2, parent=1, attributes=CHAT),
        SpanSpec(id=3, parent=3),
    )

    assert trace.spans == 3


# --- identity --------------------------------------------------------------------------------------------------------


def test_the_session_is_the_roots_even_when_an_inner_span_says_another() -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes={"gen_ai.conversation.id": "outer"}, start=2),
        SpanSpec(id=2, parent=1, attributes={"session.id": "inner"}, start=1),
    )

    assert (trace.session_id, trace.session_source) == ("outer", "gen_ai.conversation.id")


def test_without_the_roots_the_earliest_spans_session_counts_in_the_order_of_keys() -> None:
    attributes = {"gen_ai.conversation.id": "c", "session.id": "s"}
    trace = trace_of(
        SpanSpec(id=1),
        SpanSpec(id=3, parent=1, attributes={"session.id": "late"}, start=9),
        SpanSpec(id=2, parent=1, attributes=attributes, start=1),
    )

    assert (trace.session_id, trace.session_source) == ("s", "session.id")


@pytest.mark.parametrize("value", ["[Scrubbed due to 'session']", "", "  ", True, "x" * 2000])
def test_what_is_no_id_is_no_session(value: Any) -> None:
    trace = trace_of(SpanSpec(id=1, attributes={"session.id": value}))

    assert (trace.session_id, trace.session_source) == (TRACE_ID, "trace")
    assert "no_session" in trace.gaps


def test_the_users_own_keys_come_first() -> None:
    spans = SpanSpec(
        id=1, attributes={"my.chat": 7, "session.id": "s", "job": "refund", "who": "ada"}
    )
    trace = trace_of(spans, keys=Keys(session=("my.chat",), task=("job",), user=("who",)))

    assert (trace.session_id, trace.session_source) == ("7", "my.chat")
    assert (trace.task_id, trace.user_id) == ("refund", "ada")


def test_a_thread_id_is_found_in_metadata() -> None:
    trace = trace_of(SpanSpec(id=1, attributes={"metadata": json.dumps({"thread_id": "t"})}))

    assert (trace.session_id, trace.session_source) == ("t", "metadata.thread_id")


@pytest.mark.parametrize(
    ("value", "expected"), [(True, True), ("false", False), ("maybe", None), (1, None)]
)
def test_a_task_says_whether_it_succeeded(value: Any, expected: bool | None) -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes={"spanwise.task.id": "t", "spanwise.task.success": value})
    )

    assert (trace.task_id, trace.task_success) == ("t", expected)


def test_the_service_is_the_roots_resource() -> None:
    inner = request(SpanSpec(id=2, parent=1, start=0), resource={"service.name": "inner"})
    root = request(
        SpanSpec(id=1, start=1), resource={"service.name": "outer", "service.version": "1.2"}
    )

    trace = read_trace([inner, root], trace_id=TRACE_ID, closed="idle")

    assert (trace.service, trace.agent, trace.agent_version) == ("outer", "outer", "1.2")


def test_a_trace_without_resource_has_an_unknown_service() -> None:
    trace = read_trace([request(SpanSpec(id=1), resource={})], trace_id=TRACE_ID, closed="idle")

    assert trace.service == "unknown_service"


def test_the_agent_is_the_outermost_one_under_a_name_that_stays() -> None:
    name = "Crew_d0606630-517f-4faf-a373-bf7f526fa94c"
    trace = trace_of(
        SpanSpec(id=1, attributes={**AGENT, "gen_ai.agent.name": name}, start=1),
        SpanSpec(
            id=2, parent=1, attributes={**AGENT, "gen_ai.agent.name": "writer 20251122"}, start=0
        ),
    )

    assert (trace.agent, trace.agents) == ("Crew", ("writer", "Crew"))


# --- texts -----------------------------------------------------------------------------------------------------------


def test_the_question_is_the_users_last_words_not_the_first() -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes={**CHAT, "gen_ai.input.messages": asked("hello", "and now?")})
    )

    assert trace.input == "and now?"


def test_a_cut_history_does_not_hide_the_whole_one_further_in() -> None:
    whole = asked("first", "second")
    trace = trace_of(
        SpanSpec(id=1, attributes={**AGENT, "gen_ai.input.messages": whole[:80]}),
        SpanSpec(id=2, parent=1, attributes={**CHAT, "gen_ai.input.messages": whole}, start=1),
    )

    assert (trace.input, trace.truncated) == ("second", True)


def test_the_answer_is_the_last_calls_text_without_tool_calls() -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes=AGENT),
        SpanSpec(
            id=2, parent=1, attributes={**CHAT, "gen_ai.output.messages": said("done")}, start=1
        ),
        SpanSpec(
            id=3,
            parent=1,
            attributes={**CHAT, "gen_ai.output.messages": said("let me save", call("save"))},
            start=5,
        ),
    )

    assert trace.output == "done"


def test_nothing_recorded_is_none_and_named() -> None:
    trace = trace_of(SpanSpec(id=1, attributes={**CHAT, "gen_ai.response.model": "m"}))

    assert (trace.input, trace.output, trace.tokens.input, trace.cost_usd) == (
        None,
        None,
        None,
        None,
    )
    assert set(trace.gaps) == {"no_session", "no_content", "no_tool_definitions"}


def test_a_trace_without_calls_misses_no_tool_definitions() -> None:
    assert "no_tool_definitions" not in trace_of(SpanSpec(id=1)).gaps


def test_a_long_text_is_capped_without_calling_the_recording_truncated() -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes={**CHAT, "gen_ai.output.messages": said("x" * 200_000)})
    )

    assert (len(trace.output or ""), trace.truncated) == (65_536, False)


# --- sums ------------------------------------------------------------------------------------------------------------


def spent(given: int, came: int, identifier: str = "", **more: Any) -> dict[str, Any]:
    counts = {"gen_ai.usage.input_tokens": given, "gen_ai.usage.output_tokens": came}
    return {**CHAT, **counts, **({"gen_ai.response.id": identifier} if identifier else {}), **more}


def test_sums_of_outer_spans_are_not_counted_again() -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes={**AGENT, "gen_ai.usage.input_tokens": 30}),
        SpanSpec(id=2, parent=1, attributes=spent(10, 1, "a"), start=1),
        SpanSpec(id=3, parent=1, attributes=spent(20, 2, "b"), start=2),
    )

    assert (trace.tokens.input, trace.tokens.output) == (30, 3)


def test_a_call_seen_by_two_instrumentations_is_one_call() -> None:
    outer = {"openinference.span.kind": "LLM", "llm.token_count.prompt": 10, "output.value": "hi"}
    trace = trace_of(
        SpanSpec(id=1, attributes=AGENT),
        SpanSpec(id=2, parent=1, attributes=outer, start=1, end=9),
        SpanSpec(id=3, parent=2, attributes=spent(10, 1, "r1"), start=2, end=8),
    )

    (one,) = trace.model_calls
    assert (one.output, one.span_id, trace.tokens.input) == ("hi", span_id(3), 10)


def test_the_same_response_id_beside_is_one_call_but_a_test_servers_constant_id_is_not() -> None:
    same = trace_of(
        SpanSpec(id=1, attributes=spent(10, 1, "r")),
        SpanSpec(id=2, attributes=spent(10, 1, "r"), start=4),
    )
    constant = trace_of(
        SpanSpec(id=1, attributes=spent(10, 1, "r")),
        SpanSpec(id=2, attributes=spent(25, 1, "r"), start=4),
    )

    assert (same.tokens.input, constant.tokens.input) == (10, 35)


def test_a_sub_agents_call_inside_a_tool_is_a_call_of_its_own() -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes=spent(10, 1, "a"), end=9),
        SpanSpec(id=2, parent=1, attributes=tool("ask_expert"), start=1),
        SpanSpec(id=3, parent=2, attributes=spent(5, 1, "b"), start=2),
    )

    assert (len(trace.model_calls), trace.tokens.input) == (2, 15)


def test_without_counts_of_calls_the_outer_sum_stands_in() -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes={**AGENT, "gen_ai.aggregated_usage.input_tokens": 40}),
        SpanSpec(
            id=2, parent=1, attributes={**CHAT, "gen_ai.aggregated_usage.input_tokens": 40}, start=1
        ),
    )

    assert trace.tokens.input == 40


def test_an_exported_cost_wins_and_an_unknown_model_has_none() -> None:
    exported = trace_of(SpanSpec(id=1, attributes=spent(10, 1, "a", **{"operation.cost": 0.25})))
    unknown = trace_of(
        SpanSpec(id=1, attributes=spent(10, 1, "a", **{"gen_ai.response.model": "home-grown"}))
    )

    assert (exported.cost_usd, unknown.cost_usd) == (0.25, None)


def test_a_known_model_is_priced_from_the_table() -> None:
    tokens = Tokens(input=1_000, output=100, cached=400)

    assert cost("gpt-4o-mini", tokens) == pytest.approx(600 * 1.5e-7 + 400 * 7.5e-8 + 100 * 6e-7)
    assert cost("openai/gpt-4o-mini", tokens) == cost("gpt-4o-mini", tokens)
    beside = Tokens(input=600, output=100, cached=400)
    assert cost("claude-sonnet-4-5", beside) == pytest.approx(
        600 * 3e-6 + 400 * 3e-7 + 100 * 1.5e-5
    )
    assert cost("gpt-4o-mini", Tokens()) is None
    assert cost(None, tokens) is None


# --- tool calls ------------------------------------------------------------------------------------------------------


def asking(*calls: dict[str, Any]) -> dict[str, Any]:
    return {**CHAT, "gen_ai.output.messages": said("", *calls)}


def calls_of(trace: Trace) -> list[tuple[str, Any, Any]]:
    return [(c.name, c.arguments, c.result) for c in trace.tool_calls]


def test_a_span_and_the_request_for_it_are_one_call_by_id() -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes=asking(call("f", "c1", a=1)), end=1),
        SpanSpec(id=2, attributes=tool("f", **{"gen_ai.tool.call.id": "c1"}), start=2),
        SpanSpec(id=3, attributes={**CHAT, "gen_ai.input.messages": answered("c1", "ok")}, start=3),
    )

    assert calls_of(trace) == [("f", {"a": 1}, "ok")]


def test_calls_without_ids_are_joined_by_arguments_before_order() -> None:
    def span(number: int, value: int, start: int) -> SpanSpec:
        given = {
            "gen_ai.tool.call.arguments": json.dumps({"a": value}),
            "gen_ai.tool.call.result": f"r{value}",
        }
        return SpanSpec(id=number, attributes=tool("f", **given), start=start)

    trace = trace_of(
        SpanSpec(id=1, attributes=asking(call("f", "c1", a=1), call("f", "c2", a=2)), end=1),
        span(2, 2, 2),
        span(3, 1, 3),
    )

    assert [(c.id, c.arguments["a"], c.result) for c in trace.tool_calls] == [
        ("c2", 2, "r2"),
        ("c1", 1, "r1"),
    ]


def test_a_call_only_seen_in_messages_is_kept_without_a_span() -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes=asking(call("f", "c1", a="x")), end=1),
        SpanSpec(
            id=2,
            attributes={**CHAT, "gen_ai.input.messages": answered("c1", "bad argument")},
            start=3,
        ),
    )

    (only,) = trace.tool_calls
    assert (only.span_id, only.result, only.error) == (None, "bad argument", None)


def test_a_history_repeated_in_every_request_makes_no_calls() -> None:
    old = [{"role": "assistant", "parts": [call("f", "old", a=1)]}, json.loads(asked("next"))[0]]
    trace = trace_of(
        SpanSpec(id=1, attributes={**CHAT, "gen_ai.input.messages": json.dumps(old)}),
        SpanSpec(id=2, attributes={**CHAT, "gen_ai.input.messages": json.dumps(old)}, start=1),
    )

    assert trace.tool_calls == ()


def test_a_failed_tool_says_why() -> None:
    raised = ("exception", {"exception.type": "TimeoutError", "exception.message": "too slow"})
    trace = trace_of(
        SpanSpec(id=1, attributes=tool("f"), status=2, message="other", events=[raised]),
        SpanSpec(id=2, attributes=tool("g"), status=2, message="why", start=1),
        SpanSpec(id=3, attributes=tool("h", **{"error.type": "TOOL_ERROR"}), status=2, start=2),
    )

    assert [c.error for c in trace.tool_calls] == ["too slow", "why", "TOOL_ERROR"]


def test_an_id_that_is_no_text_is_none() -> None:
    asked = {"role": "tool", "tool_call_id": "c", "content": "x", "is_error": True}
    chat = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "tool",
        "llm.input_messages.0.message.content": "x",
        "llm.input_messages.0.message.tool_call_id": ["c"],
        "input.value": json.dumps({"messages": [asked]}),
    }
    message = ("gen_ai.tool.message", {"content": "{}", "id": ["c"]})
    run = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "f"}

    trace = trace_of(
        SpanSpec(id=1, attributes=chat), SpanSpec(id=2, parent=1, attributes=run, events=[message])
    )

    assert [(call.name, call.id) for call in trace.tool_calls] == [("f", None)]


def test_a_hand_over_to_an_agent_of_the_trace_is_no_tool_call_but_a_tool_named_so_is() -> None:
    requested = asking(call("transfer_to_refund_agent", "c1"), call("transfer_to_human", "c2"))
    trace = trace_of(
        SpanSpec(id=1, attributes=requested),
        SpanSpec(id=2, attributes={**AGENT, "gen_ai.agent.name": "Refund Agent"}, start=1),
    )

    assert [c.name for c in trace.tool_calls] == ["transfer_to_human"]


def test_the_frameworks_way_to_answer_is_no_tool() -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes=asking(call("final_answer", "c1", answer="x"), call("f", "c2")))
    )

    assert [c.name for c in trace.tool_calls] == ["f"]


def test_a_tool_span_inside_the_same_tools_span_is_the_same_call() -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes=tool("f", **{"gen_ai.tool.call.id": "c1"}), end=9),
        SpanSpec(
            id=2,
            parent=1,
            attributes=tool("f", **{"gen_ai.tool.call.result": "ok"}),
            start=1,
            end=8,
        ),
    )

    assert calls_of(trace) == [("f", None, "ok")]


def test_a_plain_span_named_after_a_requested_tool_is_its_execution() -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes=asking(call("f", "c1")), end=1),
        SpanSpec(id=2, name="running f", start=2, status=2, message="broke"),
    )

    (only,) = trace.tool_calls
    assert (only.span_id, only.error) == (span_id(2), "broke")


# --- status ----------------------------------------------------------------------------------------------------------


def test_a_handled_tool_error_leaves_the_trace_as_its_root_says() -> None:
    trace = trace_of(
        SpanSpec(id=1, status=1), SpanSpec(id=2, parent=1, attributes=tool("f"), status=2, start=1)
    )

    assert (trace.status, trace.error) == ("ok", None)


def test_a_model_error_that_ended_the_work_counts_though_the_root_hides_it() -> None:
    trace = trace_of(
        SpanSpec(id=1, status=1),
        SpanSpec(id=2, parent=1, attributes=CHAT, status=2, message="400", start=1),
    )

    assert (trace.status, trace.error) == ("error", "400")


def test_show_has_the_contracts_names_in_their_order() -> None:
    shown = show(trace_of(SpanSpec(id=1, attributes=tool("f"), start=1_000)))

    assert list(shown)[:23] == CONTRACT.split()
    assert list(shown["tool_calls"][0]) == [
        "id",
        "name",
        "arguments",
        "result",
        "error",
        "agent",
        "span_id",
    ]
    assert shown["start"] == "1970-01-01T00:00:01.000000Z"
