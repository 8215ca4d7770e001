"""What a judge's answer only quotes: text that is in the recording is an agent's word, not the judge's."""

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import TypeVar

T = TypeVar("T")

_LOOSE = re.compile(r"[\s\\]+")
_ESCAPE = re.compile(r"\\{1,8}(?:u00|x)([0-9a-fA-F]{2})")
_ENDLESS = re.compile(r"&#x?[0-9a-f]{16,}", re.IGNORECASE)
"""An entity whose number Python may refuse to read."""
_OPENING = 16  # characters of a broken object by which it is known as a quotation


class Quotations:
    """Tells the judge's own words from those of the recording, however these are spaced, escaped or widened.

    Args:
        recording: The untrusted text of the prompt, as the judge saw it.
        may_quote: Whether words of its own beside quotations are an answer. False: the judge is to be asked once more.
    """

    def __init__(self, recording: str = "", *, may_quote: bool = False) -> None:
        self._recording = recording
        self.may_quote = may_quote

    @cached_property
    def _plain(self) -> str:
        return plain(self._recording)

    def own(self, found: Sequence[tuple[str, T]]) -> list[T]:
        texts = [plain(text) for text, _ in found]
        quoted = Counter({text: self._plain.count(text) for text in set(texts)})
        own: list[T] = []
        for text, (_, value) in zip(texts, found, strict=True):
            if quoted[text] > 0:
                quoted[text] -= 1
            else:
                own.append(value)
        return own

    def begins(self, text: str) -> bool:
        """Whether a broken object that begins the text may be passed over as a quotation."""
        return self.may_quote and plain(text[:_OPENING]) in self._plain


def plain(text: str) -> str:
    """The text without white space, backslashes, escapes, entities and wide forms."""
    unescaped = html.unescape(_ENDLESS.sub("", text))
    unescaped = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), unescaped)
    return _LOOSE.sub("", unicodedata.normalize("NFKC", unescaped))
