"""Patterns that RE2 runs: in time in proportion to the text, whatever they are. Look-around is not among them."""

from __future__ import annotations

import re

import re2

KINDS = ("token", "email", "card", "phone")
"""The built-in kinds, in the order in which they are looked for: a card's digits could pass for those of a phone."""
_PARTS = re.compile(r"\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|.", re.DOTALL)
"""Escapes, classes of characters, and single characters."""
_BINDS = frozenset({"^", "$", r"\b", r"\B", r"\A", r"\z"})


def linear(pattern: str) -> re2.Pattern:
    """The pattern, compiled. Raises ValueError: RE2 cannot run it."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        why = error.args[0]
        raise ValueError(why.decode(errors="replace") if isinstance(why, bytes) else why) from error


def unbound(pattern: str) -> re2.Pattern | None:
    """The pattern without what binds it to what is around: it matches wherever the pattern does, and maybe more.

    None: there is no such pattern that would not match everywhere.
    """
    loose = "".join("" if each[0] in _BINDS else each[0] for each in _PARTS.finditer(pattern))
    try:
        compiled = None if r"\Q" in pattern else linear(loose)
    except ValueError:
        return None
    return None if compiled is None or compiled.search(b"") is not None else compiled
