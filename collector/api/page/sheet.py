"""What one page may hold. Everything that a sender can make long or many is put on a page through a `Sheet`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

import msgspec
from markupsafe import escape

PAGE = 2 << 20
"""Bytes of HTML that a page has for what senders said."""
SHOWN = 2048
"""Characters of a text; the API has the rest."""
NAME = 200
"""Characters of a name."""
T = TypeVar("T")
R = TypeVar("R")


class Sheet:
    """A part of a page and the room that is left on it, in bytes of HTML."""

    def __init__(self, whole: str, room: int = PAGE) -> None:
        """`whole` is where the API has everything that does not fit."""
        self.whole = whole
        self.left = room

    def text(self, value: Any, whole: str | None = None) -> str:
        """A JSON value as text; what does not fit is counted, with the address of the whole."""
        text = plain(value)
        shown = text[:SHOWN]
        if not self._put(shown):
            shown = ""
        missing = len(text) - len(shown)
        if not missing:
            return shown
        where = f"the whole in {whole or self.whole}"
        if not shown:
            return f"{missing:,} characters are not shown; {where}"
        return f"{shown} \u2026 {missing:,} more characters; {where}"

    def name(self, value: Any) -> str:
        """A name, cut where it is longer than names are."""
        short = name(value)
        self._put(short)
        return short

    def rows(
        self, items: Iterable[T], make: Callable[[T], R], *, cost: int, most: int | None = None
    ) -> list[R]:
        """The rows of the first items, while there is room; `cost` is what a row takes besides its texts."""
        rows: list[R] = []
        for item in islice(items, most):
            if self.left < cost:
                break
            self.left -= cost
            rows.append(make(item))
        return rows

    def _put(self, text: str) -> bool:
        size = len(escape(text).encode(errors="replace"))
        if size > self.left:
            return False
        self.left -= size
        return True


def left_out(items: Sequence[Any], rows: Sequence[Any]) -> int:
    """How many of the items have no row."""
    return len(items) - len(rows)


def plain(value: Any) -> str:
    """A JSON value as text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def name(value: Any) -> str:
    """At most `NAME` characters of a value as text."""
    text = plain(value)
    return text if len(text) <= NAME else f"{text[:NAME]}\u2026"
