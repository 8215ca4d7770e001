"""Copy the prices of chat models out of litellm's own price map into `evaluators/prices.json`.

Run at build time, where litellm is installed: `python scripts/make_prices.py [DATE]`. Nothing imports litellm later.
"""

import importlib.metadata
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_MODES = ("chat", "completion", "responses")
_MAP = "model_prices_and_context_window_backup.json"
TARGET = Path(__file__).parents[1] / "evaluators" / "prices.json"


def compact(prices: dict[str, Any]) -> dict[str, list[float | None]]:
    """Model -> [input, output, cache read, cache write] in USD per token, for models that talk and have a price."""
    table: dict[str, list[float | None]] = {}
    for model, entry in sorted(prices.items()):
        into, out = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
        if entry.get("mode") in _MODES and (into or out):
            cache = [entry.get(f"cache_{each}_input_token_cost") for each in ("read", "creation")]
            table[model] = [into or 0, out or 0, *cache]
    return table


def main() -> None:
    """Write the table; the date says when it was made."""
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        sys.exit("litellm is not installed")
    source = Path(spec.origin).with_name(_MAP)
    table = compact(json.loads(source.read_text(encoding="utf-8")))
    head = {
        "source": f"litellm {importlib.metadata.version('litellm')}, {_MAP}",
        "date": sys.argv[1] if len(sys.argv) > 1 else None,
        "unit": "USD per token: input, output, cache read, cache write",
    }
    lines = ",\n".join(f"{json.dumps(model)}:{json.dumps(price)}" for model, price in table.items())
    TARGET.write_text(
        json.dumps(head)[:-1] + ', "models": {\n' + lines + "\n}}\n", encoding="utf-8"
    )
    print(f"{len(table)} models -> {TARGET}")  # noqa: T201


if __name__ == "__main__":
    main()
