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


USAGE = {"cache_read_input_tokens": 100_000, "cache_creation_input_tokens": 5_000}
ANTHROPIC = {"gen_ai.provider.name": "anthropic"}


@for_each(
    "end,sent,provider",
    [
        # beside the input
        *(
            (end, 30, provider)
            for end in ("_input_tokens", ".input_tokens")
            for provider in ({}, {"gen_ai.system": "vertex_ai"}, ANTHROPIC)
        ),
        (".input_tokens", 105_030, ANTHROPIC),  # within it, as the conventions count for Anthropic
    ],
)
def test_the_cost_of_a_cache_in_every_spelling(
    end: str, sent: int, provider: dict[str, str]
) -> None:
    cached = {f"cache_read{end}": 100_000, f"cache_creation{end}": 5_000}
    counts = under("gen_ai.usage.", input_tokens=sent, **cached)

    assert trace_of({**MODEL, **counts, **provider}).cost_usd == pytest.approx(EXACT)


def test_the_cost_of_a_cache_in_a_usage_object() -> None:
    usage = json.dumps({"input_tokens": 30, "output_tokens": 1000, **USAGE})
    own = {"model.name": MODEL["gen_ai.request.model"], "usage_details": usage}

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


R1: dict[str, Any] = {ID: "r1"}
R2: dict[str, Any] = {ID: "r2"}
FIRST = answer(3, "a.b", own=R1, output=4, parent=1)


def beside(scope: str, own: dict[str, Any], **more: Any) -> SpanSpec:
    """What another library says of an answer: it counts differently."""
    return answer(4, scope, own=own, output=3, **more)


def same(one: dict[str, Any], two: dict[str, Any]) -> tuple[SpanSpec, SpanSpec]:
    return answer(3, "instr.a", own=one), answer(4, "instr.b", own=two)


@for_each(
    "spans,tokens",
    [
        # ids on one side, and other counts of what was cached
        *((each, (100, 10, None)) for each in (same(R1, {}), same({}, R1))),
        (same(R1 | {CACHED: 64}, R1), (100, 10, 64)),
        (same(R1, R1 | {CACHED: 64}), (100, 10, 64)),
        (same({CACHED: 0}, {}), (100, 10, 0)),
        # an SDK and an instrumentation, by id and by counts
        ((FIRST, beside("sdk", R1)), (100, 3, None)),
        ((answer(3, "a.b", own=R1, output=3, parent=1), beside("sdk", {})), (100, 3, None)),
        # two answers: one after the other, of one instrumentation, with other ids, with other words
        ((FIRST, beside("sdk", R1, start=18, end=19)), (200, 7, None)),
        ((FIRST, beside("a.b", R1)), (200, 7, None)),
        ((FIRST, beside("sdk", R2)), (200, 7, None)),
        (same(R1, R2), (200, 20, None)),
        ((answer(3, "a", "yes"), answer(4, "b", "no")), (200, 20, None)),
        ((answer(3, "a"), answer(4, "a")), (200, 20, None)),
    ],
)
def test_what_two_libraries_recorded_of_one_answer_is_one_call(
    spans: tuple[SpanSpec, SpanSpec], tokens: tuple[int, int, int | None]
) -> None:
    agent = SpanSpec(id=2, parent=1, attributes=AGENT, end=20)

    found = trace_of(SpanSpec(id=1, end=20), agent, *spans).tokens

    assert (found.input, found.output, found.cached) == tokens
