"""Texts as evaluators compare them: their words, the distance of embeddings, Cogitator's deterministic comparisons."""

import json
import math
import re
from functools import lru_cache
from operator import mul

from evaluators.digest import canonical
from evaluators.matching.ecmascript import found, trim
from evaluators.matching.json_values import parse_json
from evaluators.model import JSON
from evaluators.resources import Vector

LIMIT = 8192  # bytes of a text that are compared; a session keeps no more of an output than this
QUESTION = 1024  # bytes of a question that are compared with those of later turns

_WORD = re.compile(r"\w+")
_LONG_WORD = re.compile(r"\w{2,}")
_STOP_WORDS = frozenset(
    _WORD.findall(
        "a an the is are was were be been being have has had do does did will would shall should may might can could "
        "of in to for on with at by from as into through during before after above below and but or nor not so yet "
        "both either neither each every all any few more most other some such no only own same than too very it its"
    )
)


def text_of(value: JSON) -> str:
    """PandaProbe's text of a value: "" of None, a string itself, else JSON with ASCII escapes in its own key order."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def clip(text: str, limit: int = LIMIT) -> str:
    """The longest beginning of `text` that takes at most `limit` bytes as UTF-8; half a surrogate pair takes three."""
    if len(text) * 4 <= limit:
        return text
    raw = text[:limit].encode("utf-8", "surrogatepass")
    if len(raw) <= limit:
        return text[:limit]
    end = limit
    while raw[end] & 0xC0 == 0x80:  # inside a character
        end -= 1
    return raw[:end].decode("utf-8", "surrogatepass")


_ASCII = "".join(c if _WORD.match(c) else " " for c in map(chr, range(128))).lower()
_SHORT_WORDS = frozenset(_ASCII)


def ascii_words(text: str) -> list[str]:
    """Lower-cased runs of word characters of a text that is ASCII alone, several times as fast as an expression."""
    return text.translate(_ASCII).split()


@lru_cache(maxsize=256)
def words(text: str) -> frozenset[str]:
    """Lower-cased runs of word characters, longer than one, without 70 English function words."""
    if text.isascii():
        return frozenset(ascii_words(text)) - _IGNORED
    return frozenset(_LONG_WORD.findall(text.lower())) - _STOP_WORDS


_IGNORED = _STOP_WORDS | _SHORT_WORDS


def jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    """Shared words over all words; 0 when there are none."""
    shared = len(left & right)
    union = len(left) + len(right) - shared
    return shared / union if union else 0.0


def cosine_distance(left: Vector, right: Vector) -> float:
    """1 - cosine, clamped to [0, 1]: a negative similarity counts as 0; 1 when a vector has no length."""
    norms = math.sqrt(_dot(left, left)) * math.sqrt(_dot(right, right))
    if norms == 0:
        return 1.0
    return min(1.0, max(0.0, 1.0 - _dot(left, right) / norms))


def _dot(left: Vector, right: Vector) -> float:
    # An array knows a dot product a hundred times faster than a loop in Python.
    product = getattr(left, "dot", None)
    return float(product(right)) if product else math.fsum(map(mul, left, right))


# --- Cogitator's comparisons: None for a match, else the reason of a 0 -----------------------------------------------

SHOWN = 200  # characters of a text in a reason


def exact_match(output: str, expected: str | None, *, case_sensitive: bool = False) -> str | None:
    """Why the texts differ once trimmed; None when they do not."""
    if expected is None:
        return "no expected output"
    mine, theirs = trim(output), trim(expected)
    if not case_sensitive:
        mine, theirs = mine.lower(), theirs.lower()
    return None if mine == theirs else f"expected {theirs[:SHOWN]!r}, got {mine[:SHOWN]!r}"


def contains(output: str, expected: str | None, *, case_sensitive: bool = False) -> str | None:
    """Why the output does not contain the expected text; None when it does. Nothing is trimmed."""
    if expected is None:
        return "no expected output"
    mine, theirs = output, expected
    if not case_sensitive:
        mine, theirs = mine.lower(), theirs.lower()
    return None if theirs in mine else f"output does not contain {theirs[:SHOWN]!r}"


def regex(output: str, pattern: str, flags: str = "") -> str | None:
    """Why nothing in the output matches; None when something does.

    Raises re.error: the pattern is not valid, or Python cannot run it.
    """
    if found(pattern, output, flags):
        return None
    return f"output does not match /{pattern[:SHOWN]}/{flags}"


def json_schema(output: str, schema: JSON) -> tuple[str, str] | None:
    """(`parse` or `validation`, why) when the output is not JSON or does not satisfy the schema; None when it does.

    Raises Unjudgeable: the schema is not valid.
    """
    try:
        value = parse_json(output)
    except (ValueError, RecursionError) as error:
        return "parse", f"not JSON: {error}"
    # jsonschema takes 100 ms to import: only who uses it pays for it.
    from evaluators.providers.schemas import first_error  # noqa: PLC0415

    error = first_error(canonical(schema).decode(), value, trusted=True)
    return None if error is None else ("validation", error)
