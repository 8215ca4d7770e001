"""JSON values by shape, for values whose shape someone else decided."""

from __future__ import annotations

from typing import cast

from evaluators.model import JSON


def object_of(value: JSON) -> dict[str, JSON] | None:
    """The value if it is an object, else None."""
    return cast("dict[str, JSON]", value) if isinstance(value, dict) else None


def list_of(value: JSON) -> list[JSON] | None:
    """The value if it is a list, else None."""
    return cast("list[JSON]", value) if isinstance(value, list) else None
