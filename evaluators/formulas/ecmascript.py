"""Text rules of ECMAScript, which Cogitator's deterministic metrics follow.

Patterns run on Python's `re` after translation: ASCII digit, word and boundary classes, ECMAScript's white space and
line ends, named groups, `$` at the very end. Not translated: a character outside the basic plane is one character
(ECMAScript without the `u` flag counts two), and negated classes inside brackets keep Python's meaning.
"""

from __future__ import annotations

import re
from functools import lru_cache

_BLANKS = r"\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_TRIM = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}

_OUTSIDE = {
    "d": "[0-9]",
    "D": "[^0-9]",
    "w": "[A-Za-z0-9_]",
    "W": "[^A-Za-z0-9_]",
    "s": f"[{_BLANKS}]",
    "S": f"[^{_BLANKS}]",
    "b": r"(?a:\b)",
    "B": r"(?a:\B)",
}
_INSIDE = {"d": "0-9", "w": "A-Za-z0-9_", "s": _BLANKS}
_ESCAPES = set("tnvfr0123456789xucDWS")
_TOKEN = re.compile(r"\\k<(\w+)>|\\(.)|\(\?<(?![=!])|.", re.DOTALL)


def trim(text: str) -> str:
    """Without ECMAScript's white space and line ends at both sides."""
    return text.strip(_TRIM)


@lru_cache(maxsize=64)
def compiled(pattern: str, flags: str = "") -> re.Pattern[str]:
    """An ECMAScript pattern for `re`; flags i, m, s, others are ignored.

    Raises:
        re.error: Python cannot compile it even so.
    """
    bits = 0
    for flag in flags:
        bits |= _FLAGS.get(flag, 0)
    return re.compile(_translated(pattern, flags), bits)


def _translated(pattern: str, flags: str) -> str:
    parts: list[str] = []
    inside = False
    for token in _TOKEN.finditer(pattern):
        text, name, escaped = token.group(), token.group(1), token.group(2)
        if name is not None:
            parts.append(f"(?P={name})")
        elif escaped is not None:
            parts.append(_escape(escaped, inside=inside))
        elif inside:
            inside = text != "]"
            parts.append("\\[" if text == "[" else text)
        else:
            inside = text == "["
            parts.append(_plain(text, flags))
    return "".join(parts)


def _escape(letter: str, *, inside: bool) -> str:
    known = (_INSIDE if inside else _OUTSIDE).get(letter)
    if known is not None:
        return known
    if inside and letter == "b":
        return r"\x08"
    if letter.isascii() and letter.isalpha() and letter not in _ESCAPES:
        return letter  # without the `u` flag an unknown escape is the letter itself
    return f"\\{letter}"


def _plain(text: str, flags: str) -> str:
    if text == "(?<":
        return "(?P<"
    if text == "$" and "m" not in flags:
        return r"\Z"
    if text == "." and "s" not in flags:
        return r"[^\n\r\u2028\u2029]"
    return text
