"""What `redaction.patterns` may hold: names of built-in kinds, or patterns of the user's own that RE2 runs.

RE2 takes time in proportion to the text, whatever the pattern. It has no look-around and no back-references.
"""

import re
from difflib import get_close_matches
from typing import Annotated

from pydantic import AfterValidator, Field, PlainSerializer, SecretStr

from collector.config.linear_patterns import KINDS, linear

MAX_LENGTH = 1000
"""Characters of one pattern."""
MAX_PATTERNS = 64
"""Patterns: every text of every span is searched for each of them."""
_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,64}")
_WORD = re.compile(r"[A-Za-z\- ]+")


def _name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(
            "expected a name of letters, digits and _.- of at most 64 characters: the marker shows it: [name]"
        )
    return name


def _pattern(text: str) -> str:
    if text in KINDS:
        return text
    kinds = ", ".join(sorted(KINDS))
    near = get_close_matches(text.lower(), KINDS, n=1, cutoff=0.75)
    if near and _WORD.fullmatch(text):
        raise ValueError(f"is neither one of {kinds} nor a pattern; did you mean {near[0]}?")
    if len(text) > MAX_LENGTH:
        raise ValueError(f"expected at most {MAX_LENGTH} characters, got {len(text)}")
    try:
        compiled = linear(text)
    except ValueError as error:
        raise ValueError(
            f"expected one of {kinds}, or a pattern of RE2, which runs in linear time: {error}"
        ) from error
    if compiled.search(b"") is not None:
        raise ValueError("the pattern matches the empty text, so everything would be a secret")
    return text


def _few(patterns: dict[str, str]) -> dict[str, str]:
    if len(patterns) > MAX_PATTERNS:
        raise ValueError(f"expected at most {MAX_PATTERNS} patterns, got {len(patterns)}")
    return patterns


Key = Annotated[
    SecretStr,
    Field(min_length=8),
    PlainSerializer(SecretStr.get_secret_value, when_used="json"),
]
"""The judge process gets the configuration as JSON; what users see is made of Python's values, where it is masked."""
Patterns = Annotated[
    dict[Annotated[str, AfterValidator(_name)], Annotated[str, AfterValidator(_pattern)]],
    AfterValidator(_few),
]
