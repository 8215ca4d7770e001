"""Digests of the inputs of a score: the parts of a signal's id."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def options_digest(
    options: Mapping[str, Any], threshold: float | None, model: str | None = None
) -> str:
    """Digest of all settings that change a score; `model` for judged and embedded evaluators only."""
    what: dict[str, Any] = {"options": dict(options), "threshold": threshold}
    if model is not None:
        what["model"] = model
    return hashlib.sha256(canonical(what)).hexdigest()


def trace_digest(span_ids: Iterable[str], records: Iterable[str] = ()) -> str:
    """Digest of a trace: SHA-256 over its sorted span ids (hex, joined by commas).

    Then, after a semicolon, over the sorted ids of the log records whose words it has, where there are any.
    """
    parts = [",".join(sorted(set(ids))) for ids in (span_ids, records)]
    return hashlib.sha256(";".join(part for part in parts if part).encode()).hexdigest()
