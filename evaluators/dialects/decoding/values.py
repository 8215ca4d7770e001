"""One attribute's value, whatever it was wrapped in, as JSON.

Instrumentations write JSON, JSON inside JSON strings, Python reprs, and any of these cut in the middle by the SDK's
value limit. Texts stay texts: only what is surely a container or a quoted string is unwrapped.
"""

import ast
import json
import re
import warnings
from collections.abc import Callable
from typing import Any

import msgspec

from evaluators.dialects.decoding.room import has_room
from evaluators.model import JSON

_REPR_LIMIT = 65_536  # Python reprs longer than this (characters) are left as text: the parser of Python is slow
_REPR_DEPTH = 40
_WORD = "redacted|masked|hidden|filtered|scrubbed|sanitized|anonymized|withheld"
_MASK = re.compile(
    rf"""\*{{3,}} | HIDDEN:[\w-]+ | redacted(?:-by-litellm)? | REDACTED | MASKED
    | (?i: \*{{3,}}(?:{_WORD})\*{{3,}} | __(?:{_WORD})__
         | [\[<]{{1,2}} \s* (?:{_WORD}) (?:[:\s_-][^\]>\n]{{0,60}})? [\]>]{{1,2}} )""",
    re.VERBOSE,
)
"""What is in place of content: OpenInference's `__REDACTED__` (OPENINFERENCE_HIDE_*), LiteLLM's (turn_off_message_
logging), Koog's `HIDDEN:non-empty` unless it is verbose, the `[REDACTED]` and `<REDACTED>` of Claude Code and Codex,
`****` of the Collector's redaction processor, `[Filtered]` of Sentry, and what people write in masks of their own."""
LONGEST_MASK = 100  # characters: what is longer is content
MASK_BEGINS = "_r<[H*RM"  # how masks begin
_SCRUBBED = "[Scrubbed due to "
_decode_json = msgspec.json.Decoder().decode
_ERRORS = (msgspec.DecodeError, ValueError, RecursionError)


def is_hidden(text: str) -> bool:
    """Whether a mask was put in place of content.

    Read as content, every question would be the same question and its answer a perfect echo of it.
    """
    if len(text) > LONGEST_MASK or text[:1] not in MASK_BEGINS:
        return False
    return _MASK.fullmatch(text) is not None


def is_mask(value: JSON) -> bool:
    return isinstance(value, str) and is_hidden(value)


def is_scrubbed(value: JSON) -> bool:
    """Whether logfire replaced this value: no id, no text."""
    return isinstance(value, str) and value.startswith(_SCRUBBED) and value.endswith("]")


def is_json(text: str) -> bool:
    try:
        _decode_json(text)
    except _ERRORS:
        return False
    return True


def unwrap(value: JSON) -> JSON:
    """The JSON value in `value`; a text that holds none is returned as it is. Never raises."""
    if not isinstance(value, str):
        return value
    if value[:1] == "{":  # nearly always whole
        try:
            return _decode_json(value)
        except _ERRORS:
            pass
    return unwrap_cut(value)[0]


def unwrap_cut(value: JSON) -> tuple[JSON, bool]:
    """As `unwrap`; and whether the value was cut in the middle and only its beginning is there."""
    for _ in range(3):
        if not isinstance(value, str):
            return value, False
        inner, cut = _once(value)
        if cut or inner is value or not isinstance(inner, str):
            return inner, cut
        value = inner
    return value, False


def _once(text: str) -> tuple[JSON, bool]:
    head = text.lstrip()[:1]
    if head not in ("{", "[", '"'):
        return text, False
    try:
        return _decode_json(text), False
    except _ERRORS:
        pass
    if head == '"':
        return text, False
    return _not_quite_json(text)


def _not_quite_json(text: str) -> tuple[JSON, bool]:
    found, value = _lenient(text)
    if found:
        return value, False
    value = python_literal(text)
    if value is not None:
        return value, False
    value = salvage(text)
    return (text, False) if not value else (value, True)


def _lenient(text: str) -> tuple[bool, JSON]:
    try:
        value = json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return False, None
    return True, _clean(value)


def _clean(value: JSON) -> JSON:
    """Without lone surrogates, which cannot be encoded again."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_clean(item) for item in as_list(value)]
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in as_dict(value).items()}
    return value


def python_literal(text: str) -> JSON:
    """The container a Python repr shows; None when `text` is not such a repr or too large to try."""
    text = text.strip()
    if (
        len(text) > _REPR_LIMIT
        or text[:1] not in ("{", "[", "(")
        or text[-1:] not in ("}", "]", ")")
    ):
        return None
    if not has_room(text) or _depth(text) > _REPR_DEPTH:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value: Any = ast.literal_eval(text)
        return (
            _clean(msgspec.to_builtins(value, str_keys=True))
            if isinstance(value, dict | list | tuple)
            else None
        )
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _depth(text: str) -> int:
    depth = deepest = 0
    for bracket in re.findall(r"[\[\](){}]", text):
        depth += 1 if bracket in "[({" else -1
        deepest = max(deepest, depth)
    return deepest


def text_of(value: JSON) -> str | None:
    """A text for people: strings as they are, anything else as JSON; None for None and empty."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError, OverflowError):
        return None


def string(value: JSON) -> str | None:
    """`value` when it is a text, neither empty nor scrubbed nor hidden, else None."""
    if not isinstance(value, str) or not value:
        return None
    if value[0] in MASK_BEGINS and (is_scrubbed(value) or is_hidden(value)):
        return None
    return value


def integer(value: JSON) -> int | None:
    """`value` as a count, also when exported as float or text, else None."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return value if value >= 0 else None
    if isinstance(value, float):
        return int(value) if value >= 0 and value.is_integer() else None
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 16 else None


def number(value: JSON) -> float | None:
    """`value` as a finite non-negative number, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e15 else None


_is: Callable[[object, type], bool] = isinstance
"""`isinstance` that tells the type checker nothing of what is inside, which `JSON` says better."""


def as_dict(value: JSON) -> dict[str, JSON]:
    return value if _is(value, dict) else {}


def as_list(value: JSON) -> list[JSON]:
    return value if _is(value, list) else []


# --- JSON that was cut in the middle ---------------------------------------------------------------------------------

_LIMIT = 1 << 20
_DEPTH = 64
"""Deeper texts are not messages: closing them at every token would cost the square of their length."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*("?)|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_SCALAR = re.compile(r"-?\d[\d.eE+-]*|true|false|null")
_GOES_ON = re.compile(r"[{}\[\],]")
_BROKEN_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_LONE_SURROGATE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
_CLOSER = {"{": "}", "[": "]"}


def salvage(text: str) -> JSON:
    """The container that `text` began, closed at the last complete value or inside a cut string; None if there is none.

    A value that was complete before the cut is kept; a string that was cut is kept as far as it goes.
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
        elif symbol not in ':"' and not _SCALAR.fullmatch(token.group()):
            if _GOES_ON.search(text, token.end()):
                return None  # it never was JSON: a repr, for one
            break
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


def first_of(item: dict[str, JSON], *keys: str) -> JSON:
    for key in keys:
        if item.get(key) is not None:
            return item[key]
    return None


def first_text(item: dict[str, JSON], *keys: str) -> str | None:
    for key in keys:
        if text := string(item.get(key)):
            return text
    return None


def in_order(text: str) -> tuple[str, ...]:
    """The words of a list in which the first is the best."""
    return tuple(text.split())


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NO_ERROR = frozenset({"", "none", "null", "no error", "false"})


def says_error(value: JSON) -> bool:
    """Whether a value under `error` is one: numbers measure something."""
    if isinstance(value, str):
        return value.strip().lower() not in _NO_ERROR
    return value is True or bool(as_dict(value) or as_list(value))


def plain_result(content: JSON) -> JSON:
    """The text of a result that is a list of text blocks; anything else as it stands."""
    blocks = [as_dict(block) for block in as_list(content)]
    if blocks:
        key = "content" if all(block.get("type") == "text" for block in blocks) else "text"
        texts = [block.get("text", block.get(key)) for block in blocks]
        if all(isinstance(text, str) for text in texts):
            return "\n".join(str(text) for text in texts)
        if len(blocks) == 1 and blocks[0].keys() == {"json"}:
            return blocks[0]["json"]
    return None if is_mask(content) else content
