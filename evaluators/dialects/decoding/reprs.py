"""Python reprs of objects, as some instrumentations export them: `ChatMessage(role=<Role.USER: 'user'>, content='Hi')`.

Read, never evaluated: calls become objects of their keyword arguments, enum members their values, anything else that
is in angle brackets a text. What JavaScript's `util.inspect` shows is read as well: `{ content: [], isError: true }`.
"""

import ast
import re
from dataclasses import dataclass

from evaluators.dialects.decoding.room import has_room
from evaluators.model import JSON

_LIMIT = 1 << 18  # characters; longer reprs are left as text
_DEPTH = 40  # objects within objects; a repr nested deeper is left as text, before the parser's stack ends
_OBJECT = re.compile(r"\[?[A-Z]\w*\((?:\s*[a-z_]\w*=|\)$)")
_INSPECTED = re.compile(r"\[?\s*\{\s*[A-Za-z_$][\w$]*:\s")
_OPAQUE = re.compile(r"<[\w.]+ object at 0x[0-9a-f]+>\Z")
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<string>[bru]{0,2}(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))
    |(?P<number>-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.]))
    |(?P<member><[\w.]+:\ )
    |(?P<opaque><[^<>]*(?:<[^<>]*>[^<>]*)*>)
    |(?P<name>[A-Za-z_][\w.]*)
    |(?P<symbol>[()\[\]{},:=>])
    )""",
    re.VERBOSE | re.DOTALL,
)
_JAVASCRIPT = {"null": None, "undefined": None, "true": True, "false": False}
_CONSTANTS: dict[str, JSON] = {"None": None, "True": True, "False": False} | _JAVASCRIPT
_CLOSER = {"(": ")", "[": "]", "{": "}"}
_TYPED = frozenset({"type", "kind", "block_type", "part_kind"})
_KEYWORD = re.compile(r"\s*([A-Za-z_]\w*)=(?!=)")
_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def looks_like_object(text: str) -> bool:
    return _OBJECT.match(text) is not None


def is_opaque(text: str) -> bool:
    """Whether a text is the repr of an object that shows nothing of itself: `<groq.Stream object at 0x7f6d>`."""
    return _OPAQUE.match(text) is not None


def read_repr(text: str) -> JSON:
    """The object in a repr; None when `text` is not a repr, is too large, or was cut.

    A keyword's leading underscore is dropped (`_role`, a private field), and an object without a `type` of its own
    gets its class's name in snake case, as the conventions name types (`ToolCall` -> `tool_call`).
    """
    known = looks_like_object(text) or _INSPECTED.match(text)
    if len(text) > _LIMIT or not known or not has_room(text):
        return None
    try:
        reader = _ReprParser(text)
        value = reader.value(0)
        return value if reader.at_end() else None
    except _NoReprError:
        return None


def read_fields(text: str) -> dict[str, JSON]:
    """The fields in what Pydantic's models print, `name='x' arguments={}`; empty when `text` is not all of that."""
    if len(text) > _LIMIT or _KEYWORD.match(text) is None or not has_room(text):
        return {}
    try:
        return _ReprParser(text).fields()
    except _NoReprError:
        return {}


class _NoReprError(Exception):
    """The text goes on in a way that no repr does."""


@dataclass(slots=True)
class _ReprParser:
    _text: str
    _at: int = 0

    def at_end(self) -> bool:
        return _SPACE.fullmatch(self._text, self._at) is not None

    def value(self, depth: int) -> JSON:
        if depth > _DEPTH:
            raise _NoReprError
        kind, token = self._next()
        if kind == "string":
            return _string(token)
        if kind == "number":
            return float(token) if re.search(r"[.eE]", token) else int(token)
        if kind == "opaque":
            return token
        if kind == "member":
            value = self.value(depth + 1)
            self._expect(">")
            return value
        if kind == "name":
            return self._named(token, depth)
        if token in _CLOSER:
            return self._container(token, depth)
        raise _NoReprError

    def fields(self) -> dict[str, JSON]:
        """`name=value` after `name=value`, until the end."""
        fields: dict[str, JSON] = {}
        while not self.at_end():
            key = self._keyword()
            if key is None:
                raise _NoReprError
            fields[key] = self.value(0)
        return fields

    def _named(self, name: str, depth: int) -> JSON:
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        if not self._skip("("):
            return name
        item: dict[str, JSON] = {}
        positional: list[JSON] = []
        while not self._skip(")"):
            key = self._keyword()
            value = self.value(depth + 1)
            if key is None:
                positional.append(value)
            else:
                item[key.lstrip("_") or key] = value
            if not self._skip(","):
                self._expect(")")
                break
        if positional and not item:
            return positional[0] if len(positional) == 1 else positional
        if _TYPED.isdisjoint(item):
            item["type"] = _WORD.sub("_", name.rpartition(".")[2]).lower()
        return item

    def _container(self, opening: str, depth: int) -> JSON:
        closer = _CLOSER[opening]
        items: list[JSON] = []
        pairs: dict[str, JSON] = {}
        while not self._skip(closer):
            value = self.value(depth + 1)
            if opening == "{" and self._skip(":"):
                pairs[str(value)] = self.value(depth + 1)
            else:
                items.append(value)
            if not self._skip(","):
                self._expect(closer)
                break
        return pairs if opening == "{" and not items else items

    def _keyword(self) -> str | None:
        match = _KEYWORD.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        return match.group(1)

    def _next(self) -> tuple[str, str]:
        match = _TOKEN.match(self._text, self._at)
        if match is None or match.lastgroup is None:
            raise _NoReprError
        self._at = match.end()
        return match.lastgroup, match.group(match.lastgroup)

    def _skip(self, symbol: str) -> bool:
        text, at = self._text, self._at
        while at < len(text) and text[at].isspace():
            at += 1
        if text.startswith(symbol, at):
            self._at = at + 1
            return True
        return False

    def _expect(self, symbol: str) -> None:
        if not self._skip(symbol):
            raise _NoReprError


def _string(token: str) -> JSON:
    try:
        value: object = ast.literal_eval(token)
    except (ValueError, SyntaxError):
        raise _NoReprError from None
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value).encode("utf-8", "replace").decode()
