"""Explanations as prose: `names` in backticks become code, ids of spans that the page shows become links. Pure."""

from __future__ import annotations

import re
from collections.abc import Container

from markupsafe import Markup, escape

MARKED = 40
"""Names and ids of one text that are marked: each takes more of the page than its text."""
_MARK = re.compile(r"`(?P<name>[^`\n]{1,200})`|\b(?P<span>[0-9a-f]{16})\b")


def prose(text: str, spans: Container[str] = frozenset()) -> Markup:
    """The text, escaped, with its names and the ids among `spans` marked."""
    made, place = Markup(""), 0
    for number, found in enumerate(_MARK.finditer(text)):
        if number == MARKED:
            break
        made += escape(text[place : found.start()]) + _marked(found, spans)
        place = found.end()
    return made + escape(text[place:])


def _marked(found: re.Match[str], spans: Container[str]) -> Markup:
    if name := found["name"]:
        return Markup("<code>{}</code>").format(name)
    span = found["span"]
    if span not in spans:
        return escape(span)
    return Markup('<a class="mono" href="#span-{0}">{0}</a>').format(span)
