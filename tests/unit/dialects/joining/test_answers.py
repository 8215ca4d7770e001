"""The question and the answer of a trace: which words they are, and what no answer means."""

from typing import Any

import pytest

from evaluators.model import Tokens
from tests.support.conventions import AGENT, CHAT, ROOT, asked, made, model, said, says, tool
from tests.support.dialect_spans import SpanSpec, span_id, trace_of, under
from tests.support.openinference import of
from tests.support.table import for_each
from tests.support.weather import dump


def test_the_question_is_the_users_last_words_not_the_first() -> None:
    assert trace_of(model(1, 0, asked("hello", "and now?"))).input == "and now?"


def test_a_cut_history_does_not_hide_the_whole_one_further_in() -> None:
    whole = asked("first", "second")
    cut = SpanSpec(id=1, attributes={**AGENT, "gen_ai.input.messages": whole[:80]})
    trace = trace_of(cut, model(2, 1, whole))

    assert (trace.input, trace.truncated) == ("second", True)


def test_nothing_recorded_is_none_and_named() -> None:
    trace = trace_of(model(1, attributes={"gen_ai.response.model": "m"}, parent=0))

    assert (trace.input, trace.output, trace.tokens.input, trace.cost_usd) == (None,) * 4
    assert set(trace.gaps) == {"no_session", "no_content", "no_tool_definitions"}
    assert "no_tool_definitions" not in trace_of(SpanSpec(id=1)).gaps, (
        "without calls none is missing"
    )


def test_a_long_answer_is_capped_and_the_trace_says_so() -> None:
    trace = trace_of(model(1, answer=said("x" * 200_000)))

    assert (len(trace.output or ""), trace.truncated) == (65_536, True)
    assert "truncated" in trace.gaps


# --- words on the top span, whoever wrote them there, whether or not its parent came ---------------------------------


TOP_QUESTION, TOP_ANSWER = "What is 3+4?", "It is 7."
LANGFUSE = {"langfuse.observation.type": "span"}
SIDES = {"langfuse.observation.input": TOP_QUESTION, "langfuse.observation.output": TOP_ANSWER}


def inner(number: int, question: str, answer: str) -> SpanSpec:
    return model(number, number, asked(question), said(answer))


CALLS = (
    inner(2, f"Classify: {TOP_QUESTION}", "math"),
    inner(3, f"math: {TOP_QUESTION}", '{"result": 7}'),
)


@for_each(
    "attributes",
    [
        SIDES,
        {"langfuse.trace.input": TOP_QUESTION, "langfuse.trace.output": TOP_ANSWER},
        {"input.value": TOP_QUESTION, "output.value": TOP_ANSWER},
        {
            "langfuse.observation.input": f'{{"question": "{TOP_QUESTION}"}}',
            "output.value": TOP_ANSWER,
        },
    ],
)
@for_each("scope", ["my-app", "litellm", "ai.koog"])
def test_what_a_program_stamps_on_its_own_root_is_read(
    attributes: dict[str, Any], scope: str
) -> None:
    trace = trace_of(SpanSpec(id=1, scope=scope, attributes=attributes, end=9), *CALLS)

    assert (trace.input, trace.output) == (TOP_QUESTION, TOP_ANSWER)


def test_what_is_stamped_on_a_model_call_or_a_tool_is_not_the_turns() -> None:
    stamp = {"input.value": "template", "output.value": "{}"}
    stamped = model(2, 2, asked(TOP_QUESTION), said(TOP_ANSWER), attributes=stamp)
    trace = trace_of(SpanSpec(id=1, end=9), stamped)

    assert (trace.input, trace.output) == (TOP_QUESTION, TOP_ANSWER)


@for_each("flags", [0, 0x100])
@for_each("mark", [None, "as_root", "is_app_root"])
def test_the_one_span_above_all_others_is_read_where_its_parent_never_comes(
    flags: int, mark: str | None
) -> None:
    marked = {f"langfuse.internal.{mark}": True} if mark else {}
    top = SpanSpec(id=1, parent=99, flags=flags, attributes={**LANGFUSE, **SIDES, **marked}, end=9)

    trace = trace_of(top, *CALLS)

    assert (trace.input, trace.output) == (TOP_QUESTION, TOP_ANSWER)
    expected = ("local", span_id(1)) if mark else ("missing", None)
    assert (trace.root, trace.root_span_id) == expected
    assert ("no_root" in trace.gaps) is (mark is None)


def test_of_two_spans_without_their_parents_none_is_above_the_other() -> None:
    tops = (
        SpanSpec(id=1, parent=98, attributes={**LANGFUSE, **SIDES}, end=9),
        SpanSpec(id=5, parent=99, attributes=LANGFUSE, start=5, end=9),
    )

    assert trace_of(*tops, *CALLS).output == '{"result": 7}'


# --- what a provider says instead of an answer is the call's error ---------------------------------------------------


CACHE_READ = "cache_read.input_tokens"


@for_each(
    "error",
    [
        {"error_code": "SAFETY", "error_message": "It was blocked."},
        {"error": {"message": "It was blocked.", "type": "x", "code": 1}},
        {"type": "error", "error": {"type": "overloaded", "message": "It was blocked."}},
        {"object": "error", "message": "It was blocked.", "code": 400},
        {"error": "It was blocked."},
        {"__type": "ThrottlingException", "message": "It was blocked."},
        {"id": "r", "object": "response", "error": {"message": "It was blocked."}, "output": []},
    ],
)
def test_an_error_in_place_of_an_answer_is_the_calls(error: dict[str, Any]) -> None:
    answer = {"output.value": dump(error)}
    around = {"openinference.span.kind": "CHAIN", "input.value": "What?", **answer}
    inner = made(2, 1, {"openinference.span.kind": "LLM", **answer})
    trace = trace_of(SpanSpec(id=1, name="run", attributes=around, end=9), inner)

    assert trace.model_calls[0].error == "It was blocked."
    assert (trace.model_calls[0].output, trace.status) == (None, "error")


@for_each("answer", ['{"error": "late", "count": 3}', '{"error": null}', "error"])
def test_an_answer_that_speaks_of_an_error_is_an_answer(answer: str) -> None:
    trace = trace_of(ROOT, model(2, 1, asked("What?"), says(answer)))

    assert (trace.output, trace.model_calls[0].error) == (answer, None)


def test_the_root_of_agentcore_has_the_turns_words() -> None:
    said = {"user_prompt": "How many?", "agent_response": "There are 12."}
    words = {f"agentcore.invocation.{key}": text for key, text in said.items()}
    trace = trace_of(
        SpanSpec(id=1, name="POST /invocations", attributes=words, end=9),
        model(2, 1, asked("Classify: How many?"), says("stock")),
    )

    assert (trace.input, trace.output) == ("How many?", "There are 12.")


def test_spans_in_a_ring_of_parents_are_a_turn() -> None:
    for one, two in ((2, 1), (1, 2)):  # a ring of two, and each its own parent
        agent = SpanSpec(id=1, parent=one, name="agent", attributes=AGENT, end=9)
        assert not trace_of(agent, SpanSpec(id=2, parent=two, name="work", start=1, end=2)).is_part


@for_each(
    "name,sent,cached,total",
    [
        ("gpt-4o-mini", 120, 9_000, 9_120),
        ("gpt-4o-mini", 9_120, 9_000, 9_120),
        ("claude-sonnet-4-5", 120, 9_000, 120),
    ],
)
def test_cached_tokens_that_were_left_out_of_the_input_are_added(
    name: str, sent: int, cached: int, total: int
) -> None:
    counts = under("gen_ai.usage.", input_tokens=sent, output_tokens=10, **{CACHE_READ: cached})
    trace = trace_of(ROOT, model(2, 1, attributes={"gen_ai.request.model": name, **counts}))

    assert trace.tokens == Tokens(input=total, output=10, cached=cached)


def test_cached_counts_of_the_conventions_stand_beside_openinferences() -> None:
    counts = under("llm.token_count.", prompt=100_000, completion=100)
    own = of("LLM", llm__model_name="gpt-4o-mini", **{f"gen_ai.usage.{CACHE_READ}": 90_000})
    trace = trace_of(ROOT, {**own, **counts})

    assert trace.tokens == Tokens(input=100_000, output=100, cached=90_000)
    assert trace.cost_usd == pytest.approx(0.00831)  # the sum of fractions of a cent


# --- an answer that is not exported is a gap of the recording; no answer is the agent's ------------------------------


ASKED = {
    **CHAT,
    "gen_ai.request.model": "m",
    "gen_ai.input.messages": asked("Hi?"),
    "gen_ai.usage.output_tokens": 7,
}
EMPTY = {"gen_ai.output.messages": '[{"role":"assistant","parts":[],"finish_reason":"stop"}]'}
TOOL = tool("look_up")
CALLED = TOOL | {"gen_ai.tool.call.arguments": '{"a": 1}'}


def gaps(*spans: dict[str, Any]) -> tuple[str, ...]:
    inner = [
        made(at, 10 * at, each, end=10 * at + 5, status=2 if "error.type" in each else 0)
        for at, each in enumerate(spans, 2)
    ]
    return trace_of(SpanSpec(id=1, name="turn", end=99), *inner).gaps


@for_each(
    "why,spans,hidden",
    [
        ("counted and not there", (ASKED,), True),
        ("after a tool", (ASKED, TOOL, ASKED), True),
        ("an empty message", (ASKED | EMPTY,), False),
        ("it called a tool", (ASKED, TOOL), False),
        ("what it did is there", (ASKED, CALLED, ASKED), False),
        ("nothing was said", (ASKED | {"gen_ai.usage.output_tokens": 0},), False),
        ("the model failed", (ASKED | {"error.type": "timeout"},), False),
    ],
)
def test_an_answer_that_was_counted_and_is_not_there_was_not_exported(
    why: str, spans: tuple[dict[str, Any], ...], hidden: bool
) -> None:
    assert ("no_content" in gaps(*spans)) is hidden, why


@for_each("mask", ["***", "[REDACTED]"])
def test_a_masked_answer_is_a_gap_though_the_rest_is_seen(mask: str) -> None:
    """The whole attribute, or a part of the message; the same with an empty answer is the agent's silence."""
    for answer in (mask, says(mask)):
        assert "no_content" in gaps(ASKED, CALLED, ASKED | {"gen_ai.output.messages": answer})
    assert "no_content" not in gaps(ASKED, CALLED, ASKED | EMPTY)
