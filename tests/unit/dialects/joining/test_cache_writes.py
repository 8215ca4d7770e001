"""Tokens that were written to a provider's cache cost what the provider asks for them, in every spelling."""

import json
from typing import Any

import pytest

from evaluators.model import Tokens
from evaluators.prices import cost
from tests.support.conventions import CHAT
from tests.support.dialect_spans import trace_of, under
from tests.support.table import for_each

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
