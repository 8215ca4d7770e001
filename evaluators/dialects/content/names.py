"""Names and ids out of a trace: short enough for a label, without characters that separate, command or hide."""

from __future__ import annotations

import re
from functools import lru_cache

LONGEST = 128
"""Characters of a name; the rest is cut."""
_CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def clean(text: str) -> str:
    """The text with U+FFFD for each control character, line separator and mark of direction."""
    return text if text.isprintable() else _CONTROLS.sub("\ufffd", text)


def clean_name(text: str) -> str:
    """The same, at most 128 characters."""
    return _clean_name(text) if len(text) <= LONGEST else clean(text[:LONGEST])


_clean_name = lru_cache(maxsize=1024)(clean)
