"""Tokens and cost, each call once."""

from typing import Any

import pytest

from evaluators.model import Tokens
from evaluators.prices import cost
from tests.support.conventions import AGENT, made, model, ran
from tests.support.dialect_spans import SpanSpec, span_id, trace_of


def spent(number: int, given: int, came: int, identifier: str = "", **more: Any) -> SpanSpec:
    counts = {"gen_ai.usage.input_tokens": given, "gen_ai.usage.output_tokens": came}
    counts |= {"gen_ai.response.id": identifier} if identifier else {}
    return model(number, number, attributes=counts | more.pop("attributes", {}), **more)


def test_sums_of_outer_spans_are_not_counted_again() -> None:
    agent = SpanSpec(id=1, attributes={**AGENT, "gen_ai.usage.input_tokens": 30})
    trace = trace_of(agent, spent(2, 10, 1, "a"), spent(3, 20, 2, "b"))

    assert (trace.tokens.input, trace.tokens.output) == (30, 3)


def test_a_call_seen_by_two_instrumentations_is_one_call() -> None:
    outer = {"openinference.span.kind": "LLM", "llm.token_count.prompt": 10, "output.value": "hi"}
    trace = trace_of(
        SpanSpec(id=1, attributes=AGENT), made(2, 1, outer, end=9), spent(3, 10, 1, "r1", parent=2)
    )

    (one,) = trace.model_calls
    assert (one.output, one.span_id, trace.tokens.input) == ("hi", span_id(3), 10)


def test_the_same_response_id_beside_is_one_call_but_a_test_servers_constant_id_is_not() -> None:
    for sent, total in ((10, 10), (25, 35)):
        assert trace_of(spent(2, 10, 1, "r"), spent(4, sent, 1, "r")).tokens.input == total


def test_a_sub_agents_call_inside_a_tool_is_a_call_of_its_own() -> None:
    outer, inner = spent(1, 10, 1, "a", parent=0, end=9), spent(3, 5, 1, "b", parent=2)
    trace = trace_of(outer, ran(2, 2, "ask_expert"), inner)

    assert (len(trace.model_calls), trace.tokens.input) == (2, 15)


def test_without_counts_of_calls_the_outer_sum_stands_in() -> None:
    total = {"gen_ai.aggregated_usage.input_tokens": 40}
    trace = trace_of(SpanSpec(id=1, attributes=AGENT | total), model(2, 1, attributes=total))

    assert trace.tokens.input == 40


def test_an_exported_cost_wins_and_an_unknown_model_has_none() -> None:
    for stated, usd in (({"operation.cost": 0.25}, 0.25), ({"gen_ai.response.model": "own"}, None)):
        assert trace_of(spent(1, 10, 1, "a", attributes=stated)).cost_usd == usd


def test_a_known_model_is_priced_from_the_table() -> None:
    tokens = Tokens(input=1_000, output=100, cached=400)

    assert cost("gpt-4o-mini", tokens) == pytest.approx(600 * 1.5e-7 + 400 * 7.5e-8 + 100 * 6e-7)
    assert cost("openai/gpt-4o-mini", tokens) == cost("gpt-4o-mini", tokens)
    beside, usd = Tokens(input=600, output=100, cached=400), 600 * 3e-6 + 400 * 3e-7 + 100 * 1.5e-5
    assert cost("claude-sonnet-4-5", beside) == pytest.approx(usd)
    assert cost("gpt-4o-mini", Tokens()) is None
    assert cost(None, tokens) is None
