"""Tokens and cost, each call once."""

import json
from typing import Any

import pytest

from evaluators.model import Tokens
from evaluators.prices import cost
from tests.support.conventions import AGENT, CHAT, made, model, said
from tests.support.dialect_spans import SpanSpec, span_id, trace_of, under
from tests.support.table import for_each


def spent(number: int, given: int, came: int, identifier: str = "", **more: Any) -> SpanSpec:
    counts = {"gen_ai.usage.input_tokens": given, "gen_ai.usage.output_tokens": came}
    counts |= {"gen_ai.response.id": identifier} if identifier else {}
    return model(number, number, attributes=counts | more.pop("attributes", {}), **more)


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


# --- what was written to a provider's cache costs what the provider asks for it, in every spelling -------------------


MODEL = {**CHAT, "gen_ai.request.model": "claude-sonnet-4-5", "gen_ai.usage.output_tokens": 1000}
EXACT = 30 * 3e-6 + 100_000 * 3e-7 + 5_000 * 3.75e-6 + 1000 * 1.5e-5
"""USD: 30 tokens sent, 100,000 read from the cache, 5,000 written to it, 1,000 answered."""


def priced(**attributes: Any) -> float | None:
    return trace_of({**MODEL, **attributes}).cost_usd


@for_each("provider", [{}, {"gen_ai.system": "vertex_ai"}, {"gen_ai.provider.name": "anthropic"}])
@for_each("form", ["{}_input_tokens", "{}.input_tokens"])
def test_beside_the_input(provider: dict[str, str], form: str) -> None:
    counts = {
        "gen_ai.usage.input_tokens": 30,
        f"gen_ai.usage.{form.format('cache_read')}": 100_000,
        f"gen_ai.usage.{form.format('cache_creation')}": 5_000,
    }

    assert priced(**counts, **provider) == pytest.approx(EXACT)


def test_within_the_input_as_the_conventions_count_for_anthropic() -> None:
    counts = {
        "gen_ai.provider.name": "anthropic",
        "gen_ai.usage.input_tokens": 105_030,
        "gen_ai.usage.cache_read.input_tokens": 100_000,
        "gen_ai.usage.cache_creation.input_tokens": 5_000,
    }

    assert priced(**counts) == pytest.approx(EXACT)


def test_in_a_usage_object() -> None:
    counts = {"cache_read_input_tokens": 100_000, "cache_creation_input_tokens": 5_000}
    usage = {"input_tokens": 30, "output_tokens": 1000, **counts}
    own = {"model.name": MODEL["gen_ai.request.model"], "usage_details": json.dumps(usage)}

    found = trace_of(under("langfuse.observation.", type="generation", **own)).cost_usd

    assert found == pytest.approx(EXACT)


def test_a_model_without_a_price_for_it_is_asked_the_price_of_input() -> None:
    tokens = Tokens(input=100, output=0)

    assert cost("gpt-4o", tokens, 40) == pytest.approx(cost("gpt-4o", tokens))


def test_what_was_written_is_in_the_price_alone() -> None:
    counts = {"gen_ai.usage.input_tokens": 30, "gen_ai.usage.cache_creation.input_tokens": 5_000}
    trace = trace_of({**MODEL, **counts})

    assert trace.tokens == trace.model_calls[0].tokens == Tokens(input=30, output=1000)


# --- one call of a model that two libraries recorded, beside each other or in two branches of a trace ----------------


ID = "gen_ai.response.id"
CACHED = "gen_ai.usage.cache_read.input_tokens"


def answer(number: int, scope: str, text: str = "a", output: int = 10, **more: Any) -> SpanSpec:
    """Number 3 is in the agent, number 4 beside it and within its time."""
    counts = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": output}
    own = counts | more.pop("own", {})
    place: dict[str, Any] = {"parent": 5 - number, "end": 20 - number, **more}
    return model(number, number, answer=said(text), scope=scope, attributes=own, **place)


def counted(first: SpanSpec, later: SpanSpec) -> Tokens:
    agent = SpanSpec(id=2, parent=1, attributes=AGENT, end=20)
    return trace_of(SpanSpec(id=1, end=20), agent, first, later).tokens


R1: dict[str, Any] = {ID: "r1"}


@for_each(
    "one,two,cached",
    [
        (R1, {}, None),
        ({}, R1, None),
        (R1 | {CACHED: 64}, R1, 64),
        (R1, R1 | {CACHED: 64}, 64),
        ({CACHED: 0}, {}, 0),
    ],
)
def test_ids_on_one_side_and_other_cached_counts(
    one: dict[str, Any], two: dict[str, Any], cached: int | None
) -> None:
    tokens = counted(answer(3, "instr.a", own=one), answer(4, "instr.b", own=two))

    assert tokens == Tokens(input=100, output=10, cached=cached)


FIRST = answer(3, "a.b", own=R1, output=4, parent=1)


def beside(scope: str, own: dict[str, Any], **more: Any) -> SpanSpec:
    """What another library says of an answer: it counts differently."""
    return answer(4, scope, own=own, output=3, **more)


@for_each(
    "first,second,output",
    [
        (FIRST, beside("sdk", R1), 3),
        (answer(3, "a.b", own=R1, output=3, parent=1), beside("sdk", {}), 3),  # by counts
        (FIRST, beside("sdk", R1, start=18, end=19), 7),  # one after the other
        (FIRST, beside("a.b", R1), 7),  # the same instrumentation
        (FIRST, beside("sdk", {ID: "r2"}), 7),  # another answer
    ],
)
def test_an_sdk_and_an_instrumentation_that_record_one_answer_are_one_call(
    first: SpanSpec, second: SpanSpec, output: int
) -> None:
    tokens = counted(first, second)

    assert (tokens.input, tokens.output) == (100 if output == 3 else 200, output)


@for_each(
    "first,later",
    [
        (answer(3, "a", own=R1), answer(4, "b", own={ID: "r2"})),  # other ids
        (answer(3, "a", "yes"), answer(4, "b", "no")),  # other words
        (answer(3, "a"), answer(4, "a")),  # one library
    ],
)
def test_answers_that_differ_are_two(first: SpanSpec, later: SpanSpec) -> None:
    assert counted(first, later).input == 200
