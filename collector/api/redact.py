"""`redaction.content: drop`: no message text leaves through the API, whatever the records hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import msgspec
from msgspec import structs

from evaluators.model import Trace


def signal(json: bytes) -> bytes:
    """The signal without explanation, error text and the texts of its metadata."""
    whole = cast(dict[str, Any], msgspec.json.decode(json))
    whole["explanation"] = None
    whole["metadata"] = _without_texts(whole.get("metadata") or {})
    if whole.get("error"):
        whole["error"] = {**whole["error"], "message": ""}
    return msgspec.json.encode(whole)


def trace(whole: Trace) -> Trace:
    """The trace without what was said."""
    return replace(
        whole,
        system=None,
        input=None,
        output=None,
        error=None,
        tool_calls=tuple(
            structs.replace(call, arguments=None, result=None, error=None)
            for call in whole.tool_calls
        ),
        model_calls=tuple(
            structs.replace(call, output=None, error=None) for call in whole.model_calls
        ),
    )


def _without_texts(value: Any) -> Any:
    if isinstance(value, str):
        return None
    if isinstance(value, dict):
        return {key: _without_texts(child) for key, child in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [_without_texts(child) for child in cast(list[Any], value)]
    return value
