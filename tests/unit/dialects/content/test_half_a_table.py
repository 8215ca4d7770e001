"""A dialect that has only some of a call's counts does not hide the convention's on the same span."""

from typing import Any

import pytest

from evaluators.model import Tokens
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.weather import dump

CONVENTION = {
    "gen_ai.operation.name": "chat",
    "gen_ai.usage.input_tokens": "100",
    "gen_ai.usage.output_tokens": 10,
}
OPENINFERENCE = {"openinference.span.kind": "LLM"}
VERCEL = {"ai.operationId": "ai.generateText.doGenerate"}


@pytest.mark.parametrize(
    ("own", "cached", "reasoning"),
    [
        ({**OPENINFERENCE, "llm.token_count.prompt_details.cache_read": 64}, 64, None),
        ({**OPENINFERENCE, "llm.token_count.completion": 10}, None, None),
        ({**OPENINFERENCE, "llm.token_count.prompt": 100}, None, None),
        ({**OPENINFERENCE, "llm.token_count.completion_details.reasoning": "4"}, None, 4),
        ({**VERCEL, "ai.usage.cachedInputTokens": 64}, 64, None),
        ({**VERCEL, "ai.usage.reasoningTokens": 4, "ai.usage.outputTokens": 10}, None, 4),
        (
            {
                "langfuse.observation.type": "generation",
                "langfuse.observation.usage_details": '{"input_cache_read": 64}',
            },
            64,
            None,
        ),
    ],
)
def test_what_the_dialect_does_not_count_is_the_conventions(
    own: dict[str, Any], cached: int | None, reasoning: int | None
) -> None:
    trace = trace_of(SpanSpec(id=1, attributes={**CONVENTION, **own}))

    assert trace.tokens == Tokens(input=100, output=10, cached=cached, reasoning=reasoning)


def test_a_complete_table_stays_as_it_is() -> None:
    own = {**OPENINFERENCE, "llm.token_count.prompt": 7, "llm.token_count.completion": 3}
    trace = trace_of(SpanSpec(id=1, attributes={**CONVENTION, **own}))

    assert trace.tokens == Tokens(input=7, output=3)


USAGES = (
    {"prompt_tokens": 100, "completion_tokens": 12, "prompt_tokens_details": {"cached_tokens": 80}},
    {"input_tokens": 100, "output_tokens": 12, "input_tokens_details": {"cached_tokens": 80}},
    {"input_tokens": 100, "output_tokens": 12, "input_token_details": {"cache_read": 80}},
    {"input_tokens": 100, "output_tokens": 12, "cache_read_input_tokens": 80},
    {"promptTokenCount": 100, "candidatesTokenCount": 12, "cachedContentTokenCount": 80},
    {"inputTokens": 100, "outputTokens": 12, "cachedInputTokens": 80},
    {"inputTokens": 100, "outputTokens": 12, "inputTokenDetails": {"cacheReadTokens": 80}},
)


@pytest.mark.parametrize("counted", USAGES)
def test_cached_tokens_are_read_in_every_providers_object(counted: dict[str, Any]) -> None:
    usage = dump(counted)
    answer = f'{{"choices": [], "usage": {usage}}}'
    recorded = (
        {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.chat.tokenUsage": usage},
        {"langfuse.observation.type": "generation", "langfuse.observation.usage_details": usage},
        {"langwatch.span.type": "llm", "langwatch.metrics": usage},
        {
            "langwatch.span.type": "llm",
            "langwatch.metrics": f'{{"type": "json", "value": {usage}}}',
        },
        {"langsmith.span.kind": "llm", "gen_ai.completion": f'{{"usage_metadata": {usage}}}'},
        {**OPENINFERENCE, "output.value": answer},
    )

    for attributes in recorded:
        tokens = trace_of(SpanSpec(id=1, attributes=attributes)).tokens
        assert (tokens.input, tokens.output, tokens.cached) == (100, 12, 80), attributes
