"""What one page may hold. Everything that a sender can make long or many is put on a page through a `Sheet`. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import msgspec
from markupsafe import escape

PAGE = 2 << 20  # bytes of HTML that a page has for what senders said
SHOWN = 2048  # characters of a text; the API has the rest
OPENING = 900  # characters of a long text that are seen at once; the rest, up to `LONG`, is folded
LONG = 32_768  # characters of a long text, the folded ones included
NAME = 200  # characters of a name
_WORD = 80  # characters that an opening may be shorter, to end between words
_LINE = 40  # characters of an opening for which it may have a line
_FEW = 3  # lines that are not worth a fold
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    opening: str = ""
    rest: str = ""  # what a fold shows; empty when the opening is all of it
    missing: str = ""  # how much of it is on no part of the page, and where that is; empty when nothing is missing

    @property
    def size(self) -> int:
        return len(self.opening) + len(self.rest)

    def __bool__(self) -> bool:
        return bool(self.opening or self.missing)


class Sheet:
    """A part of a page and the room that is left on it, in bytes of HTML."""

    def __init__(self, whole: str, room: int = PAGE) -> None:
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

    def long(self, value: Any, whole: str | None = None, *, opening: int = OPENING) -> Folded:
        """A text that may be long, as an opening and a rest; what does not fit is counted, as in `text`."""
        text = plain(value)
        end = _opening(text, opening)
        seen, rest = text[:end], text[end:LONG]
        if not self._put(seen):
            seen = rest = ""
        elif not self._put(rest):
            rest = ""
        missing = len(text) - len(seen) - len(rest)
        if not missing:
            return Folded(opening=seen, rest=rest)
        said = "more characters" if seen else "characters are not shown"
        note = f"{missing:,} {said}; the whole in {whole or self.whole}"
        return Folded(opening=seen, rest=rest, missing=note)

    def name(self, value: Any) -> str:
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


def _opening(text: str, most: int) -> int:
    """Where the opening of a text ends: between words, where there are any, and after no more than its lines."""
    above = _after(text, most // _LINE)
    if above is not None:
        return min(above, _opening(text[:above], most))
    if len(text) <= most + _WORD:
        return len(text)
    space = max(text.rfind(blank, most - _WORD, most) for blank in " \n")
    return most if space < 0 else space + 1


def _after(text: str, lines: int) -> int | None:
    """Where so many lines end; None: at the end of the text, or a few lines before it."""
    end = -1
    for _ in range(lines):
        end = text.find("\n", end + 1)
        if end < 0:
            return None
    return len(text[:end].rstrip("\n")) if text.count("\n", end) > _FEW else None


def plain(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def name(value: Any) -> str:
    text = plain(value)
    return text if len(text) <= NAME else f"{text[:NAME]}\u2026"
