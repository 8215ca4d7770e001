"""Judges and hosted embeddings through litellm: the only importer of it, lazily (4 s and 200 MB to import)."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import math
import os
import socket
from array import array
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from evaluators.judging.embedding import Embedded
from evaluators.judging.prompt import Answer, JudgeError, Prompt

MAX_OUTPUT = 4096
"""Tokens that an answer may have: what the budget reserves for it."""
_ON_AWS = ("bedrock", "sagemaker")
_PRICES = "model_prices_and_context_window_backup.json"
_CAUSES = 20
"""Errors behind an error that are looked at."""
Price = tuple[float, float]
"""USD per token, input and output."""


class LiteLlmJudge:
    """One request, one answer: retries, limits, budgets and caches are the caller's.

    `price` is USD per 1M tokens (input, output); None = litellm's own list, and None as cost where that has none.
    """

    def __init__(
        self,
        *,
        timeout: float,
        temperature: float,
        base_url: str | None = None,
        api_key: str | None = None,
        price: Price | None = None,
    ) -> None:
        self._timeout = timeout
        self._temperature = temperature
        self._base_url = base_url
        self._api_key = api_key
        self._price = price
        self._loose: set[str] = set()
        """Models that refuse a strict schema."""
        self._tried: set[str] = set()

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
        return max(sent, prompt.tokens) * price[0] + MAX_OUTPUT * price[1]

    async def ask(self, prompt: Prompt, *, model: str) -> Answer:
        """The answer.

        Raises:
            JudgeError: rate_limited, timeout or provider_error.
        """
        strict = prompt.schema is not None and model not in self._loose
        try:
            return await self._ask(prompt, model, strict=strict)
        except JudgeError as error:
            if not strict or error.type != "refused" or model in self._tried:
                raise _public(error) from error
        # It may know no schemas: asked once without, and remembered.
        self._tried.add(model)
        try:
            answer = await self._ask(prompt, model, strict=False)
        except JudgeError as error:
            raise _public(error) from error
        self._loose.add(model)
        return answer

    async def _ask(self, prompt: Prompt, model: str, *, strict: bool) -> Answer:
        library = _library()
        request: dict[str, Any] = {
            "model": model,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
            "temperature": self._temperature,
            "max_tokens": MAX_OUTPUT,
            "timeout": self._timeout,
            "num_retries": 0,
            "max_retries": 0,
            "base_url": self._base_url,
            "api_key": self._api_key,
        }
        if strict:
            schema = {"name": prompt.name, "schema": prompt.schema, "strict": True}
            request["response_format"] = {"type": "json_schema", "json_schema": schema}
        try:
            async with asyncio.timeout(self._timeout):
                response = await library.acompletion(**request)
            text, usage = _read(response)
        except Exception as error:
            raise _failure(library, error) from error
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
        """One vector per text, in order.

        Raises:
            JudgeError: rate_limited, timeout or provider_error.
        """
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
            raise _public(_failure(library, error)) from error
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
    prices = _price_list()
    for name in (model, model.partition("/")[2]):
        entry = prices.get(name)
        if entry is not None and "input_cost_per_token" in entry:
            return (
                float(entry["input_cost_per_token"]),
                float(entry.get("output_cost_per_token") or 0.0),
            )
    return None


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
    import litellm  # noqa: PLC0415 - see the module's first line

    library = cast(Any, litellm)
    library.telemetry = False
    library.suppress_debug_info = True
    library.drop_params = True
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return library


def _read(response: Any) -> tuple[str, Any]:
    text = response.choices[0].message.content
    if not isinstance(text, str):
        raise TypeError("the answer has no text")
    return text, getattr(response, "usage", None)


def _count(usage: Any, name: str, otherwise: int) -> int:
    value = getattr(usage, name, None)
    return value if isinstance(value, int) and value > 0 else otherwise


def _failure(library: Any, error: Exception) -> JudgeError:
    """`refused` stands for a request that the provider calls malformed."""
    if isinstance(error, (TimeoutError, library.Timeout)):
        return JudgeError(type="timeout", message="the judge did not answer in time")
    if isinstance(error, library.RateLimitError):
        return JudgeError(
            type="rate_limited",
            message="the judge refused: too many requests",
            retry_after=_retry_after(error),
        )
    if (link := _broken_link(error)) is not None:
        # The library calls it an internal error of the server, with status 500.
        message = f"the provider cannot be reached ({link})"
        return JudgeError(type="provider_error", message=message)
    status = getattr(error, "status_code", None)
    # The provider's text may repeat the prompt: only the kind of error is published.
    message = f"{type(error).__name__}" + (f" (status {status})" if status else "")
    if isinstance(error, library.BadRequestError):
        return JudgeError(type="refused", message=message)
    return JudgeError(type="provider_error", message=message)


def _broken_link(error: BaseException) -> str | None:
    """The kind of connection error behind a library's error: refused, reset, no such host; None when there is none."""
    behind: BaseException | None = error
    for _ in range(_CAUSES):
        if behind is None or isinstance(behind, (ConnectionError, socket.gaierror)):
            break
        behind = behind.__cause__ or behind.__context__
    found = isinstance(behind, (ConnectionError, socket.gaierror))
    return type(behind).__name__ if found else None


def _retry_after(error: Exception) -> float | None:
    """The header in seconds; a date is not read, the usual pause serves."""
    response = getattr(error, "response", None)
    own_headers: Any = getattr(error, "litellm_response_headers", None)
    headers: Any = own_headers or getattr(response, "headers", None) or {}
    try:
        seconds = float(str(headers.get("retry-after")))
    except ValueError:
        return None
    return seconds if 0 <= seconds < math.inf else None


def _public(error: JudgeError) -> JudgeError:
    if error.type != "refused":
        return error
    return JudgeError(type="provider_error", message=error.message)
