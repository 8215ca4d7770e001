"""The class of an error: its type's name where the text gives one, else a word of a closed list. Never its text."""

from __future__ import annotations

import re

LONGEST = 48
"""Characters of a class."""
_BEGINNING = 400
"""Characters of the text that are looked at."""
_TYPE = re.compile(r"\b[A-Za-z]\w{0,39}(?:Error|Exception|Timeout)\b")
_WORDS = (
    ("timeout", re.compile(r"time[d-]?[ -]?out|deadline|\b(?:408|504)\b", re.IGNORECASE)),
    ("rate_limited", re.compile(r"rate.?limit|too many requests|quota|\b429\b", re.IGNORECASE)),
    (
        "denied",
        re.compile(
            r"unauthori[sz]ed|forbidden|permission|denied|not allowed|\b40[13]\b", re.IGNORECASE
        ),
    ),
    ("not_found", re.compile(r"not found|no such|does not exist|\b404\b", re.IGNORECASE)),
    ("unreachable", re.compile(r"connect|unreachable|\bdns\b|refused|reset by", re.IGNORECASE)),
    ("server_error", re.compile(r"internal error|unavailable|\b50[0-3]\b", re.IGNORECASE)),
    (
        "invalid_arguments",
        re.compile(r"invalid|validation|missing|required|\b4(?:00|22)\b", re.IGNORECASE),
    ),
)


def error_class(text: str) -> str:
    """`TimeoutError`, or timeout, rate_limited, denied, not_found, unreachable, server_error, invalid_arguments, error.

    The class is what texts that differ in their details have in common. It holds letters, digits and underscores.
    """
    beginning = text[:_BEGINNING]
    named = _TYPE.search(beginning)
    if named is not None:
        return named.group()[:LONGEST]
    return next((word for word, sign in _WORDS if sign.search(beginning)), "error")
