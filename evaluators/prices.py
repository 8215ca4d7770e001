"""The cost of a model call, from a table of public prices that is part of the package."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from evaluators.model import Tokens

_TABLE = Path(__file__).with_name("prices.json")


@lru_cache(maxsize=1)
def _prices() -> dict[str, list[float | None]]:
    """Model -> USD per token: input, output, input read from the cache and written to it (None: as input)."""
    table: dict[str, Any] = json.loads(_TABLE.read_text(encoding="utf-8"))
    return table["models"]


def cost(model: str | None, tokens: Tokens, written: int = 0) -> float | None:
    """USD for `tokens` of `model`; None when the model has no known price or nothing was counted.

    `written`: input tokens that were written to the provider's cache. They and those read from it are part of the
    input, but are beside it for Claude, as its API counts them. Names are also looked up without their provider
    prefix (`openai/gpt-4o`), never by similarity.
    """
    if tokens.input is None and tokens.output is None:
        return None
    price = _price(model)
    if price is None:
        return None
    input_price, output_price, cached_price, written_price = price
    uncached = tokens.input or 0
    cached = tokens.cached or 0
    if "claude" not in (model or "").lower():
        cached = min(cached, uncached)
        written = min(written, uncached - cached)
        uncached -= cached + written
    return (
        uncached * (input_price or 0)
        + cached * ((input_price if cached_price is None else cached_price) or 0)
        + written * ((input_price if written_price is None else written_price) or 0)
        + (tokens.output or 0) * (output_price or 0)
    )


@lru_cache(maxsize=1024)
def _price(model: str | None) -> list[float | None] | None:
    if not model:
        return None
    table = _prices()
    name = model.removeprefix("models/")
    return table.get(name) or table.get(name.lower()) or table.get(name.rpartition("/")[2])
