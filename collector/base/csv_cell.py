"""A cell of a CSV file (RFC 4180) that is read by a spreadsheet."""

from __future__ import annotations

from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def cell(value: Any) -> str:
    """Its text. What was not measured is empty, never 0; a text that would be run as a formula begins with `'`."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text
