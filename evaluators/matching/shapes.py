"""JSON values by shape, for values whose shape someone else decided."""

from __future__ import annotations

import json
from typing import cast

import msgspec

from evaluators.model import JSON


def object_of(value: JSON) -> dict[str, JSON] | None:
    """The value if it is an object, else None."""
    return cast("dict[str, JSON]", value) if isinstance(value, dict) else None


def list_of(value: JSON) -> list[JSON] | None:
    """The value if it is a list, else None."""
    return cast("list[JSON]", value) if isinstance(value, list) else None


def encoded(value: JSON) -> bytes:
    """As JSON bytes, equal for equal values: to compare and to measure, a tenth of `digest.canonical`'s cost."""
    try:
        return msgspec.json.encode(value, order="sorted")
    except (
        UnicodeEncodeError,
        TypeError,
        RecursionError,
    ):  # half a surrogate pair out of an escape, for one
        return json.dumps(value, sort_keys=True, default=str).encode()
