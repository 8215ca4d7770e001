"""Texts as evaluators compare them: PandaProbe's text of a value, its word sets, deterministic cuts."""

from __future__ import annotations

import json
import re
from functools import lru_cache

from evaluators.model import JSON

LIMIT = 8192
"""Bytes of a text that are compared; a session keeps no more of an output than this."""

_WORD = re.compile(r"\w+")
_STOP_WORDS = frozenset(
    _WORD.findall(
        "a an the is are was were be been being have has had do does did will would shall should may might can could "
        "of in to for on with at by from as into through during before after above below and but or nor not so yet "
        "both either neither each every all any few more most other some such no only own same than too very it its"
    )
)


def text_of(value: JSON) -> str:
    """None is empty, a string itself, anything else JSON with ASCII escapes in its own key order."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def clip(text: str, limit: int = LIMIT) -> str:
    """The longest beginning of `text` that takes at most `limit` bytes as UTF-8."""
    if len(text) * 4 <= limit:
        return text
    raw = text[:limit].encode("utf-8", "surrogatepass")
    return text[:limit] if len(raw) <= limit else raw[:limit].decode("utf-8", "ignore")


@lru_cache(maxsize=256)
def words(text: str) -> frozenset[str]:
    """Lower-cased runs of word characters, longer than one, without 70 English function words."""
    found = _WORD.findall(text.lower())
    return frozenset(word for word in found if len(word) > 1 and word not in _STOP_WORDS)


def jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    """Shared words over all words; 0 when there are none."""
    union = len(left | right)
    return len(left & right) / union if union else 0.0
