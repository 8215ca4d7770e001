"""What a score was made of, as digests: the ingredients of a signal's id (CONTRACT section 5)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any


def canonical(value: Any) -> bytes:
    """Canonical JSON: keys sorted, no blanks, UTF-8."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def options_digest(
    options: Mapping[str, Any], threshold: float | None, model: str | None = None
) -> str:
    """Of everything a user can set that changes a score; `model` for judged and embedded evaluators only."""
    what: dict[str, Any] = {"options": dict(options), "threshold": threshold}
    if model is not None:
        what["model"] = model
    return hashlib.sha256(canonical(what)).hexdigest()


def trace_digest(span_ids: Iterable[str]) -> str:
    """What a trace was made of: SHA-256 over its sorted span ids (hex, joined by commas)."""
    return hashlib.sha256(",".join(sorted(set(span_ids))).encode()).hexdigest()
