"""How much of a text a trace keeps."""

from __future__ import annotations

from evaluators.dialects.decoding.values import text_of
from evaluators.model import JSON

TEXT = 65_536
"""Characters of one text. A longer one is cut; that is our limit, not a fault of the recording (`truncated`)."""


def cap(text: str | None) -> str | None:
    """The first `TEXT` characters."""
    return text[:TEXT] if text is not None else None


def cap_json(value: JSON) -> JSON:
    """The value; when its text is too long, the beginning of that text."""
    as_is = value
    if isinstance(value, str):
        return cap(value)
    if not isinstance(value, dict | list):
        return value
    text = text_of(value)
    return as_is if text is not None and len(text) <= TEXT else cap(text)
