"""The longest valid beginning of JSON that was cut in the middle."""

from __future__ import annotations

import re

import msgspec

from evaluators.model import JSON

_LIMIT = 1 << 20
_DEPTH = 64
"""Deeper texts are no messages: closing them at every token would cost the square of their length."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*("?)|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_BROKEN_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_LONE_SURROGATE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
_CLOSER = {"{": "}", "[": "]"}


def salvage(text: str) -> JSON:
    """The container that `text` began, closed at the last complete value or inside a cut string; None if there is none.

    A value that stood complete before the cut is kept; a string that was cut is kept as far as it goes.
    """
    text = text.strip()[:_LIMIT]
    stack: list[str] = []
    safe = (0, "")  # how much can be kept, and what closes it
    for token in _TOKEN.finditer(text):
        symbol = token.group()[0]
        if len(stack) > _DEPTH:
            return None
        if symbol in "{[":
            stack.append(_CLOSER[symbol])
            safe = (token.end(), _closing(stack))
        elif symbol in "}]":
            if not stack or stack.pop() != symbol:
                break
            safe = (token.end(), _closing(stack))
        elif symbol == "," and stack:
            safe = (token.start(), _closing(stack))
        elif symbol == '"' and not token.group(1):
            return _in_string(text, stack) or _parse(text[: safe[0]] + safe[1])
    whole = _parse(text + _closing(stack))
    return whole if whole is not None else _parse(text[: safe[0]] + safe[1])


def _closing(stack: list[str]) -> str:
    return "".join(reversed(stack))


def _in_string(text: str, stack: list[str]) -> JSON:
    text = _BROKEN_ESCAPE.sub("", text)
    text = _LONE_SURROGATE.sub("", text)
    return _parse(text + '"' + _closing(stack))


def _parse(text: str) -> JSON:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
