"""Judges and hosted embeddings through litellm: the only importer of it, lazily (4 s and 200 MB to import)."""

import asyncio
import gc
import importlib.util
import json
import logging
import math
import os
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from evaluators.judging.embedding import Embedded
from evaluators.judging.prompt import Answer, Prompt
from evaluators.providers.faults import FaultyAnswer, ProviderFault, fault_of
from evaluators.providers.forms import Form, Forms

MAX_OUTPUT = 4096  # tokens of an answer, unless configured otherwise; also where no limit is known
_ON_AWS = ("bedrock", "sagemaker")
_PRICES = "model_prices_and_context_window_backup.json"
MAX_FORMS = 8
"""Requests for one answer: with all of our parameters, then with fewer."""
Price = tuple[float, float]  # USD per token, input and output


class LiteLlmJudge:
    """One answer, by as few requests as it takes to learn which parameters the model takes.

    Retries, limits, budgets and caches are the caller's. `price` is USD per 1M tokens (input, output); None = litellm's
    own list, and None as cost where that has none. `temperature` and `max_tokens` of None are not sent.
    """

    def __init__(
        self,
        *,
        timeout: float,
        temperature: float | None,
        max_tokens: int | None = MAX_OUTPUT,
        base_url: str | None = None,
        api_key: str | None = None,
        price: Price | None = None,
    ) -> None:
        self._timeout = timeout
        self._max_tokens = max_tokens
        self._base_url = base_url
        self._api_key = api_key
        self._price = price
        self._forms = Forms(Form(temperature=temperature, tokens=max_tokens))

    def load(self) -> None:
        """Import litellm now, so that no question waits for it."""
        _library()

    def price(self, model: str) -> Price | None:
        """USD per token; None = not known."""
        if self._price is not None:
            return self._price[0] / 1e6, self._price[1] / 1e6
        return listed_price(model)

    def ceiling(self, prompt: Prompt, model: str) -> float:
        """USD that the answer costs at most, as far as can be known before asking; 0 when no price is known."""
        price = self.price(model)
        if price is None:
            return 0.0
        sent = len((prompt.system + prompt.user).encode("utf-8", "replace")) / 2
        got = listed_output(model) if self._max_tokens is None else self._max_tokens
        return max(sent, prompt.tokens) * price[0] + got * price[1]

    def learned(self, model: str) -> list[str]:
        """What the model does not take of what would be sent, in words."""
        return self._forms.learned(model)

    async def ask(self, prompt: Prompt, *, model: str, is_last: bool = True) -> Answer:
        """The answer.

        `is_last`: no attempt follows: where the server fails on the schema, it is asked without one now. Raises
        JudgeError: rate_limited, timeout or provider_error.
        """
        asks_schema = prompt.schema is not None
        form = self._forms.of(model)
        if not asks_schema:
            form = replace(form, schema=False)
        suspected = False
        for at in range(MAX_FORMS):
            try:
                answer = await self._ask(prompt, model, form)
            except Exception as error:
                fault = fault_of(error)
                smaller = form.after(fault, is_last=is_last)
                if smaller is None or at == MAX_FORMS - 1:
                    is_left_out = fault.refuses is not None and not form.has(fault.refuses)
                    raise (fault.cleared() if is_left_out else fault).error() from error
                suspected |= fault.refuses is None and not fault.unclear
                form = smaller
            else:
                self._forms.answered(model, form, asks_schema=asks_schema, suspected=suspected)
                return answer
        raise AssertionError("unreachable: the last form returns or raises")

    async def _ask(self, prompt: Prompt, model: str, form: Form) -> Answer:
        request: dict[str, Any] = {
            "model": model,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
            **form.parameters(prompt),
            "timeout": self._timeout,
            "num_retries": 0,
            "max_retries": 0,
            "base_url": self._base_url,
            "api_key": self._api_key,
        }
        async with asyncio.timeout(self._timeout):
            response = await _library().acompletion(**request)
        text, usage = _read(response, prompt), getattr(response, "usage", None)
        sent = _count(usage, "prompt_tokens", prompt.tokens)
        got = _count(usage, "completion_tokens", -(-len(text) // 4))
        price = self.price(model)
        cost = None if price is None else sent * price[0] + got * price[1]
        return Answer(text=text, model=model, input_tokens=sent, output_tokens=got, cost_usd=cost)


class LiteLlmEmbedder:
    """One request, one vector per text, as floats of 32 bits; otherwise as `LiteLlmJudge`.

    `price` stands in where litellm lists none: the judge's own is more than an embedding ever costs.
    """

    def __init__(
        self,
        model: str,
        *,
        timeout: float,
        base_url: str | None = None,
        api_key: str | None = None,
        price: Price | None = None,
    ) -> None:
        self.model = model
        self._timeout = timeout
        self._base_url = base_url
        self._api_key = api_key
        self._price = listed_price(model) or (price and (price[0] / 1e6, price[1] / 1e6))

    def load(self) -> None:
        """Import litellm now, so that no text waits for it."""
        _library()

    def ceiling(self, texts: Sequence[str]) -> float:
        """USD that the vectors cost at most; 0 when no price is known."""
        if self._price is None:
            return 0.0
        return sum(len(text.encode("utf-8", "replace")) for text in texts) * self._price[0]

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """One vector per text, in order. Raises JudgeError: rate_limited, timeout or provider_error."""
        library = _library()
        try:
            async with asyncio.timeout(self._timeout):
                response = await library.aembedding(
                    model=self.model,
                    input=list(texts),
                    timeout=self._timeout,
                    api_base=self._base_url,
                    api_key=self._api_key,
                    encoding_format="float",
                    num_retries=0,
                    max_retries=0,
                )
            vectors = _vectors(response, len(texts))
        except Exception as error:
            raise fault_of(error).error() from error
        guess = sum(-(-len(text) // 4) for text in texts)
        sent = _count(getattr(response, "usage", None), "prompt_tokens", guess)
        cost = None if self._price is None else sent * self._price[0]
        return Embedded(vectors=vectors, input_tokens=sent, cost_usd=cost)


def _vectors(response: Any, count: int) -> tuple[Sequence[float], ...]:
    """Rounded to 32 bits, as a cache keeps them: a cached vector is the same vector."""
    rows = {int(row["index"]): cast(list[float], row["embedding"]) for row in response.data}
    vectors = tuple(array("f", (float(value) for value in rows[at])) for at in range(count))
    lengths = {len(vector) for vector in vectors}
    if (
        0 in lengths
        or len(lengths) > 1
        or not all(math.isfinite(v) for each in vectors for v in each)
    ):
        raise ValueError("vectors of different or no length, or not of numbers")
    return vectors


def listed_price(model: str) -> Price | None:
    """Litellm's own price of a model, USD per token; read from its file, without importing it."""
    for entry in _listed(model):
        if "input_cost_per_token" in entry:
            price = entry["input_cost_per_token"], entry.get("output_cost_per_token") or 0.0
            return float(price[0]), float(price[1])
    return None


def listed_output(model: str) -> int:
    """Tokens that an answer of the model has at most, by litellm's list."""
    most = (entry.get("max_output_tokens") for entry in _listed(model))
    return next((each for each in most if isinstance(each, int)), MAX_OUTPUT)


def _listed(model: str) -> list[Mapping[str, Any]]:
    """What litellm lists of a model, also without its provider."""
    prices = _price_list()
    return [prices[name] for name in (model, model.partition("/")[2]) if name in prices]


def missing_library(model: str) -> str | None:
    """The library that this model's provider needs and that is not installed; None = the model can be asked."""
    provider = model.partition("/")[0]
    if not provider.startswith(_ON_AWS):
        provider = str(_price_list().get(model, {}).get("litellm_provider", ""))
    on_aws = provider.startswith(_ON_AWS)
    return "boto3" if on_aws and importlib.util.find_spec("boto3") is None else None


@lru_cache(maxsize=1)
def _price_list() -> Mapping[str, Mapping[str, Any]]:
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    path = Path(spec.origin).parent / _PRICES
    return cast("Mapping[str, Mapping[str, Any]]", json.loads(path.read_text("utf-8")))


@lru_cache(maxsize=1)
def _library() -> Any:
    # Without it the import waits on the network.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ.setdefault("LITELLM_LOG", "CRITICAL")
    library = _imported()
    library.telemetry = False
    library.suppress_debug_info = True
    library.drop_params = False  # a refusal names the parameter, and `Forms` leaves it out
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return library


def _imported() -> Any:
    """The library. Its 400,000 objects live as long as the process: no look for garbage counts them, then or later.

    The import and the end of the process together take 3.1 s of CPU instead of 4.6.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        import litellm  # noqa: PLC0415 - see the module's first line
        from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler  # noqa: PLC0415

        from evaluators.providers.bounded_http import bound  # noqa: PLC0415
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
    bound(AsyncHTTPHandler)
    return cast(Any, litellm)


def _read(response: Any, prompt: Prompt) -> str:
    """The answer's text. Raises FaultyAnswer: there is none."""
    choices = getattr(response, "choices", None)
    if not choices:
        raise FaultyAnswer(_NO_ANSWER)
    choice, message = choices[0], choices[0].message
    text = message.content if isinstance(message.content, str) else ""
    thought = getattr(message, "reasoning_content", None)
    if not text.strip() and isinstance(thought, str) and prompt.is_answered_by(thought):
        return thought  # vLLM's readers of thoughts take an answer without thoughts for one
    if text.strip() and prompt.is_answered_by(text):
        return text
    fields = cast("Mapping[str, Any]", getattr(message, "provider_specific_fields", None) or {})
    word = {"length": "cut", "content_filter": "content_filter"}.get(choice.finish_reason or "")
    if word is not None or fields.get("refusal"):
        raise FaultyAnswer(ProviderFault(word=word or "refusal", billed=True))
    if not text.strip():
        raise FaultyAnswer(_NO_ANSWER)
    return text


_NO_ANSWER = ProviderFault(word="no_answer", passing=True, billed=True)


def _count(usage: Any, name: str, otherwise: int) -> int:
    value = getattr(usage, name, None)
    return value if isinstance(value, int) and value > 0 else otherwise
