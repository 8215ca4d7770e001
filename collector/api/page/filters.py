"""How numbers and times read on the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import msgspec

NOTHING = "\u2013"
SHOWN = 2000
"""Characters of any text that the page shows; the API has the rest."""


def score(value: float | None) -> str:
    """Two decimals, never rounded up to a perfect 1.00; a dash for unknown."""
    if value is None:
        return NOTHING
    text = f"{value:.2f}"
    return "0.99" if text == "1.00" and value < 1 else text


def grade(value: float | None) -> str:
    """The colour of a score: good from 0.8, fair from 0.5, poor below."""
    if value is None:
        return "unknown"
    if value >= 0.8:
        return "good"
    return "fair" if value >= 0.5 else "poor"


def duration(seconds: float) -> str:
    """`340 ms`, `4.2 s`, `3 min 5 s`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def moment(text: str | None) -> str:
    """`2026-02-03 14:05:09`, UTC."""
    return NOTHING if text is None else text[:19].replace("T", " ")


def words(name: str) -> str:
    """`tool_correctness` as people say it."""
    return name.replace("_", " ")


def plain(value: Any) -> str:
    """A JSON value as text, cut."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} …"


def escaped(value: Any) -> str:
    """A value inside a query string."""
    return quote(str(value), safe="")


FILTERS: dict[str, Callable[..., str]] = {
    "score": score,
    "grade": grade,
    "duration": duration,
    "moment": moment,
    "words": words,
    "plain": plain,
    "q": escaped,
}
