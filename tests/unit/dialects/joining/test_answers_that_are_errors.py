"""What a provider says instead of an answer is the call's error; AgentCore's root has the turn's words; odd counts."""

from typing import Any

import pytest

from evaluators.model import Tokens
from tests.support.conventions import AGENT, ROOT, asked, made, model, says
from tests.support.dialect_spans import SpanSpec, trace_of, under
from tests.support.openinference import of
from tests.support.table import for_each
from tests.support.weather import dump

CACHED = "cache_read.input_tokens"


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
    counts = under("gen_ai.usage.", input_tokens=sent, output_tokens=10, **{CACHED: cached})
    trace = trace_of(ROOT, model(2, 1, attributes={"gen_ai.request.model": name, **counts}))

    assert trace.tokens == Tokens(input=total, output=10, cached=cached)


def test_cached_counts_of_the_conventions_stand_beside_openinferences() -> None:
    counts = under("llm.token_count.", prompt=100_000, completion=100)
    own = of("LLM", llm__model_name="gpt-4o-mini", **{f"gen_ai.usage.{CACHED}": 90_000})
    trace = trace_of(ROOT, {**own, **counts})

    assert trace.tokens == Tokens(input=100_000, output=100, cached=90_000)
    assert trace.cost_usd == pytest.approx(0.00831)  # the sum of fractions of a cent
