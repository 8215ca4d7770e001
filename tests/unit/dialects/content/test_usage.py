"""Counts of tokens in every dialect: what one does not count is the convention's on the same span."""

from typing import Any

from evaluators.model import Tokens
from tests.support.conventions import CHAT
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.table import for_each
from tests.support.weather import dump

CONVENTION = {**CHAT, "gen_ai.usage.input_tokens": "100", "gen_ai.usage.output_tokens": 10}
OPENINFERENCE = {"openinference.span.kind": "LLM"}
VERCEL = {"ai.operationId": "ai.generateText.doGenerate"}
COUNT = "llm.token_count"
CACHED = '{"input_cache_read": 64}'
LANGFUSE = {"langfuse.observation.type": "generation"}
WHOLE = {**OPENINFERENCE, f"{COUNT}.prompt": 7, f"{COUNT}.completion": 3}


@for_each(
    "own,sent,came,cached,reasoning",
    [
        ({**OPENINFERENCE, f"{COUNT}.prompt_details.cache_read": 64}, 100, 10, 64, None),
        ({**OPENINFERENCE, f"{COUNT}.completion": 10}, 100, 10, None, None),
        ({**OPENINFERENCE, f"{COUNT}.prompt": 100}, 100, 10, None, None),
        ({**OPENINFERENCE, f"{COUNT}.completion_details.reasoning": "4"}, 100, 10, None, 4),
        ({**VERCEL, "ai.usage.cachedInputTokens": 64}, 100, 10, 64, None),
        ({**VERCEL, "ai.usage.reasoningTokens": 4, "ai.usage.outputTokens": 10}, 100, 10, None, 4),
        ({**LANGFUSE, "langfuse.observation.usage_details": CACHED}, 100, 10, 64, None),
        (WHOLE, 7, 3, None, None),  # a complete table stays as it is
    ],
)
def test_what_the_dialect_does_not_count_is_the_conventions(
    own: dict[str, Any], sent: int, came: int, cached: int | None, reasoning: int | None
) -> None:
    trace = trace_of(SpanSpec(id=1, attributes={**CONVENTION, **own}))

    assert trace.tokens == Tokens(input=sent, output=came, cached=cached, reasoning=reasoning)


USAGES = (
    {"prompt_tokens": 100, "completion_tokens": 12, "prompt_tokens_details": {"cached_tokens": 80}},
    {"input_tokens": 100, "output_tokens": 12, "input_tokens_details": {"cached_tokens": 80}},
    {"input_tokens": 100, "output_tokens": 12, "input_token_details": {"cache_read": 80}},
    {"input_tokens": 100, "output_tokens": 12, "cache_read_input_tokens": 80},
    {"promptTokenCount": 100, "candidatesTokenCount": 12, "cachedContentTokenCount": 80},
    {"inputTokens": 100, "outputTokens": 12, "cachedInputTokens": 80},
    {"inputTokens": 100, "outputTokens": 12, "inputTokenDetails": {"cacheReadTokens": 80}},
)


@for_each("counted", USAGES)
def test_cached_tokens_are_read_in_every_providers_object(counted: dict[str, Any]) -> None:
    usage = dump(counted)
    typed = f'{{"type": "json", "value": {usage}}}'
    for attributes in (
        {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.chat.tokenUsage": usage},
        {**LANGFUSE, "langfuse.observation.usage_details": usage},
        {"langwatch.span.type": "llm", "langwatch.metrics": usage},
        {"langwatch.span.type": "llm", "langwatch.metrics": typed},
        {"langsmith.span.kind": "llm", "gen_ai.completion": f'{{"usage_metadata": {usage}}}'},
        {**OPENINFERENCE, "output.value": f'{{"choices": [], "usage": {usage}}}'},
    ):
        tokens = trace_of(SpanSpec(id=1, attributes=attributes)).tokens
        assert (tokens.input, tokens.output, tokens.cached) == (100, 12, 80), attributes
