"""Tokens and cost, each call once."""

from typing import Any

import pytest

from evaluators.model import Tokens
from evaluators.prices import cost
from tests.support.conventions import AGENT, CHAT, tool
from tests.support.dialect_spans import SpanSpec, span_id, trace_of


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
