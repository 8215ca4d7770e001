"""Token counts and costs: every spelling of one span's own."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial

import msgspec

from evaluators.dialects.content.facts import NO_TOKENS
from evaluators.dialects.decoding.decode import ask
from evaluators.dialects.decoding.key_sets import Among
from evaluators.dialects.decoding.values import (
    as_dict,
    as_list,
    in_order,
    integer,
    number,
    unwrap,
    words,
)
from evaluators.model import JSON, Tokens

Get = Callable[[str], JSON]  # how an attribute is read


class CallTokens(Tokens, frozen=True, kw_only=True):
    """The counts of one model call that wrote to the provider's cache."""

    written: int  # input tokens that were written to it, which some providers charge more for


@dataclass(slots=True, kw_only=True, eq=False)
class TokenKeys:
    """A question (`key_sets`) about the keys of each kind of count, best first. The answer reads the counts, if any."""

    input: tuple[str, ...]
    output: tuple[str, ...]
    cached: tuple[str, ...]
    reasoning: tuple[str, ...]
    written: tuple[str, ...] = ()
    includes_cache: bool = False
    """Whether the input includes what came from the cache for Anthropic as well, whose API counts it beside input.

    A trace's input tokens are what the provider itself calls so: OpenAI's and Google's include cached ones.
    """

    @property
    def by_kind(self) -> Mapping[str, tuple[str, ...]]:
        return {kind: getattr(self, kind) for kind in (*Tokens.__struct_fields__, "written")}

    def __call__(self, names: AbstractSet[str]) -> Callable[[Get], Tokens] | None:
        there = [[key for key in keys if key in names] for keys in self.by_kind.values()]
        if not any(there):
            return None
        has_cache = self.includes_cache and (there[2] or there[4])
        return partial(_read_with_cache if has_cache else _read, there)


GENAI = TokenKeys(
    input=in_order("gen_ai.usage.input_tokens gen_ai.usage.prompt_tokens llm.usage.prompt_tokens"),
    output=in_order(
        "gen_ai.usage.output_tokens gen_ai.usage.completion_tokens llm.usage.completion_tokens"
    ),
    cached=in_order(
        """gen_ai.usage.cache_read.input_tokens gen_ai.usage.cache_read_input_tokens
        gen_ai.usage.input_tokens.cached gen_ai.usage.details.cache_read_tokens
        gen_ai.usage.details.cached_tokens gen_ai.usage.cached_tokens llm.usage.cache_read_input_tokens
        gen_ai.usage.cached_input_tokens gen_ai.usage.details.cache_read_input_tokens
        gen_ai.usage.input_tokens_details.cached_tokens gen_ai.usage.prompt_tokens_details.cached_tokens
        gen_ai.usage.input_token_details.cached agentscope.usage.cache_input_tokens"""
    ),
    reasoning=in_order(
        """gen_ai.usage.reasoning_tokens gen_ai.usage.reasoning.output_tokens
        gen_ai.usage.details.reasoning_tokens gen_ai.usage.output_tokens.reasoning
        llm.usage.reasoning_tokens gen_ai.usage.experimental.reasoning_tokens
        gen_ai.usage.completion_tokens_details.reasoning_tokens"""
    ),
    written=in_order(
        """gen_ai.usage.cache_creation.input_tokens gen_ai.usage.cache_creation_input_tokens
        gen_ai.usage.cache_write.input_tokens gen_ai.usage.cache_write_input_tokens
        gen_ai.usage.details.cache_write_tokens gen_ai.usage.details.cache_creation_input_tokens
        gen_ai.usage.input_tokens.cache_write llm.usage.cache_creation_input_tokens"""
    ),
    includes_cache=True,
)
AGGREGATE = TokenKeys(
    input=("gen_ai.aggregated_usage.input_tokens",),
    output=("gen_ai.aggregated_usage.output_tokens",),
    cached=("gen_ai.aggregated_usage.cache_read.input_tokens",),
    reasoning=(
        "gen_ai.aggregated_usage.details.reasoning_tokens",
        "gen_ai.aggregated_usage.reasoning.output_tokens",
    ),
)
OPENINFERENCE = TokenKeys(
    input=("llm.token_count.prompt",),
    output=("llm.token_count.completion",),
    cached=(
        "llm.token_count.prompt_details.cache_read",
        "llm.token_count.prompt_details.cache_input",
    ),
    reasoning=("llm.token_count.completion_details.reasoning",),
    written=("llm.token_count.prompt_details.cache_write",),
)
VERCEL = TokenKeys(
    input=("ai.usage.inputTokens", "ai.usage.promptTokens"),
    output=("ai.usage.outputTokens", "ai.usage.completionTokens"),
    cached=("ai.usage.cachedInputTokens", "ai.usage.inputTokenDetails.cacheReadTokens"),
    reasoning=("ai.usage.reasoningTokens", "ai.usage.outputTokenDetails.reasoningTokens"),
    written=("ai.usage.inputTokenDetails.cacheWriteTokens",),
)
COSTS = Among(
    *in_order(
        """operation.cost gen_ai.usage.cost llm.cost.total gen_ai.cost.total_cost gen_ai.usage.total_cost
        gen_ai.usage.cost_usd llm.usage.cost"""
    )
)
"""Keys under which a span states the exact cost of its own call in USD."""

_OBJECT = TokenKeys(
    input=in_order(
        "input_tokens prompt_tokens input promptTokens inputTokens prompt_token_count promptTokenCount"
    ),
    output=in_order(
        """output_tokens completion_tokens output completionTokens outputTokens candidates_token_count
        candidatesTokenCount"""
    ),
    cached=in_order(
        """cache_read_input_tokens cached_tokens input_cache_read cachedInputTokens cached_content_token_count
        cachedContentTokenCount input_cached_tokens cacheReadInputTokens cache_read_tokens cacheReadTokens"""
    ),
    reasoning=in_order(
        """reasoning_tokens output_reasoning reasoningTokens thoughts_token_count thoughtsTokenCount
        output_reasoning_tokens"""
    ),
    written=in_order(
        """cache_creation_input_tokens input_cache_creation cacheCreationInputTokens
        cache_write_input_tokens cacheWriteInputTokens cache_creation_tokens"""
    ),
)
_OF_INPUT = {
    "cached_tokens": ("cached_tokens", "cache_read", "cacheReadTokens", "cachedTokens"),
    "cache_creation_tokens": ("cache_creation", "cacheWriteTokens"),
}
_OF_OUTPUT = {"reasoning_tokens": ("reasoning_tokens", "reasoning", "reasoningTokens")}
_DETAILS = {
    **dict.fromkeys(
        words("""prompt_tokens_details input_tokens_details input_token_details inputTokenDetails
        promptTokensDetails"""),
        _OF_INPUT,
    ),
    **dict.fromkeys(
        words("""completion_tokens_details output_tokens_details output_token_details
        outputTokenDetails completionTokensDetails"""),
        _OF_OUTPUT,
    ),
}
"""The objects beside the sums, of OpenAI's two interfaces, LangChain and the AI SDK, and what is read of them."""


def read_tokens(attributes: Mapping[str, JSON], keys: TokenKeys) -> Tokens:
    count = ask(attributes, keys)
    return count(attributes.get) if count else NO_TOKENS


def _read(there: Sequence[Sequence[str]], get: Get) -> Tokens:
    sent, received = _first(get, there[0]), _first(get, there[1])
    cached = _first(get, there[2]) if there[2] else None
    reasoning = _first(get, there[3]) if there[3] else None
    written = _first(get, there[4]) if there[4] else None
    if sent is None and received is None and cached is None and reasoning is None:
        return NO_TOKENS
    if not written:
        return Tokens(input=sent, output=received, cached=cached, reasoning=reasoning)
    return CallTokens(
        input=sent, output=received, cached=cached, reasoning=reasoning, written=written
    )


def _read_with_cache(there: Sequence[Sequence[str]], get: Get) -> Tokens:
    tokens = _read(there, get)
    beside = (tokens.cached or 0) + written_in(tokens)
    if tokens.input is None or not beside or not _is_anthropic(get):
        return tokens
    if beside > tokens.input:  # it was never in there: the API's own figure, passed on as it came
        return tokens
    return msgspec.structs.replace(tokens, input=tokens.input - beside)


def written_in(tokens: Tokens) -> int:
    return tokens.written if isinstance(tokens, CallTokens) else 0


def without_written(tokens: CallTokens) -> Tokens:
    return Tokens(**{name: getattr(tokens, name) for name in Tokens.__struct_fields__})


def _first(get: Get, keys: Iterable[str]) -> int | None:
    for key in keys:
        value = get(key)
        if type(value) is int and value >= 0:
            return value
        if (count := integer(value)) is not None:
            return count
    return None


def read_usage_object(value: JSON) -> Tokens:
    usage = as_dict(value)
    flat = dict(usage)
    for part, said in usage.items():
        details = as_dict(said)
        for kind, keys in _DETAILS.get(part, {}).items() if details else ():
            found = next((details[key] for key in keys if details.get(key) is not None), None)
            if found is not None:
                flat.setdefault(kind, found)
    return read_tokens(flat, _OBJECT)


def usage_in_answer(value: JSON) -> Tokens:
    if isinstance(value, list):
        for piece in reversed(as_list(value)):
            tokens = usage_in_answer(unwrap(piece))
            if tokens is not NO_TOKENS:
                return tokens
        return NO_TOKENS
    answer = as_dict(value)
    for source in (answer, as_dict(answer.get("llm_output"))):
        for key in ("usage", "usage_metadata", "usageMetadata", "token_usage"):
            tokens = read_usage_object(source.get(key))
            if tokens is not NO_TOKENS:
                return tokens
    for batch in as_list(answer.get("generations")):  # LangChain's, which sums over them
        for generation in as_list(batch):
            message = as_dict(as_dict(generation).get("message"))
            tokens = usage_in_answer(as_dict(message.get("kwargs")) or message)
            if tokens is not NO_TOKENS:
                return tokens
    return NO_TOKENS


def completed(own: Tokens, other: Tokens) -> Tokens:
    if own is NO_TOKENS or other is NO_TOKENS:
        return other if own is NO_TOKENS else own
    is_whole = None not in (own.input, own.output)
    return own if is_whole and other.output not in (None, own.output) else filled(own, other)


def filled(own: Tokens, other: Tokens) -> Tokens:
    kinds = Tokens.__struct_fields__
    counts = {k: getattr(other if getattr(own, k) is None else own, k) for k in kinds}
    written = written_in(own) or written_in(other)
    return CallTokens(**counts, written=written) if written else Tokens(**counts)


def _is_anthropic(get: Get) -> bool:
    keys = ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system")
    return any(get(key) in ("anthropic", "Anthropic") for key in keys)


def with_cached(tokens: Tokens, model: str | None, get: Get) -> Tokens:
    """The counts with cached tokens in the input, where more were read from the cache than were sent beside it.

    Claude's are left as its API counts them, and have their price so.
    """
    sent, cached = tokens.input, tokens.cached
    if sent is None or cached is None or cached <= sent:
        return tokens
    if "claude" in (model or "").lower() or _is_anthropic(get):
        return tokens
    return msgspec.structs.replace(tokens, input=sent + cached + written_in(tokens))


def read_cost(attributes: Mapping[str, JSON]) -> float | None:
    """The exact cost in USD that a span states of itself, else None."""
    for key in ask(attributes, COSTS):
        if (cost := number(attributes.get(key))) is not None:
            return cost
    return None
