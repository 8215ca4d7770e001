"""What is wrong with a configuration, one line per field: `workers: expected a whole number or auto, got "many"`."""

import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic import BaseModel, PlainSerializer, SecretStr

from collector.config.tree import Config

Path = tuple[str | int, ...]
Detail = Mapping[str, Any]
"""One error as pydantic lists it: type, loc, msg, input, ctx."""

_EXPECTED = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "a text",
    "path_type": "a path",
    "tuple_type": "a list such as [a, b]",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_UNUSABLE = re.compile("[\0\ud800-\udfff]")
_BOUND = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


def problems(details: Sequence[Detail], tree: Mapping[str, Any]) -> list[str]:
    """One line per bad field, in the order of the tree; several errors of one union become one line."""
    lines: dict[Path, list[str]] = {}
    for detail in details:
        path = path_of(detail, tree)
        said = lines.setdefault(path, [])
        text = _said(detail, path)
        if text not in said:
            said.append(text)
    return [f"{shown(path)}: {_joined(said)}" for path, said in lines.items()]


def path_of(detail: Detail, tree: Any) -> Path:
    """Where the field is in the tree, without the names of union members that pydantic puts in between."""
    path: list[str | int] = []
    loc = cast(Path, detail["loc"])
    for at, part in enumerate(loc):
        if isinstance(tree, dict) and part in tree:
            tree = cast(dict[Any, Any], tree)[part]
        elif isinstance(tree, list) and isinstance(part, int):
            tree = cast(list[Any], tree)[part]
        elif not (detail["type"] == "missing" and at == len(loc) - 1):
            continue
        path.append(part)
    return tuple(path)


def unusable(tree: Any, path: Path = ()) -> list[str]:
    """One line per text that no file, no address and no server takes: with a NUL, or with half of a character."""
    if isinstance(tree, dict):
        children = cast(dict[Any, Any], tree)
        named = [line for key in children for line in unusable(key, (*path, str(key)))]
        return named + [line for k, each in children.items() for line in unusable(each, (*path, k))]
    if isinstance(tree, list):
        items = cast(list[Any], tree)
        return [line for at, each in enumerate(items) for line in unusable(each, (*path, at))]
    if isinstance(tree, str) and _UNUSABLE.search(tree):
        return [f"{shown(path)}: holds a NUL or a character that is not Unicode; remove it"]
    return []


def shown(path: Path) -> str:
    """`receiver.bearer_tokens[0]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def unknown(key: str, section: Any) -> str:
    """What is said of a key that does not exist, with the nearest one that does."""
    known = sorted(section.model_fields) if section is not None else []
    near = get_close_matches(key.lower(), known, n=1, cutoff=0.5)
    if near:
        return f'unknown key; did you mean "{near[0]}"?'
    return f"unknown key; known here: {', '.join(known)}" if known else "unknown key"


def _said(detail: Detail, path: Path) -> str:
    kind = str(detail["type"])
    if kind == "extra_forbidden":
        return unknown(str(path[-1]), _section(path[:-1]))
    if kind == "missing":
        return "required here, but missing"
    if kind == "value_error":
        return str(detail["msg"]).removeprefix("Value error, ")
    return _expected(kind, detail, path) + _given(detail, path)


def _expected(kind: str, detail: Detail, path: Path) -> str:
    context = cast(Mapping[str, Any], detail.get("ctx") or {})
    if kind == "literal_error":
        return f"expected {str(context['expected']).replace(chr(39), '')}"
    if kind in _BOUND:
        words, name = _BOUND[kind]
        return f"expected {words} {_shower(path)(context[name])}"
    return f"expected {_EXPECTED[kind]}" if kind in _EXPECTED else str(detail["msg"])


def _joined(said: Sequence[str]) -> str:
    if len(said) == 1:
        return said[0]
    heads = [text.partition(", got ")[0].removeprefix("expected ") for text in said]
    _, comma, given = said[0].partition(", got ")
    return f"expected {' or '.join(heads)}{comma}{given}"


def _given(detail: Detail, path: Path) -> str:
    value = detail.get("input")
    if is_secret(path):
        return ""
    if isinstance(value, (dict, list)):
        return f", got a {'mapping' if isinstance(value, dict) else 'list'}"
    if isinstance(value, bool) or value is None:
        return f", got {str(value).lower() if value is not None else 'nothing'}"
    text = _shower(path)(value)
    return f', got "{text[:80]}{"..." if len(text) > 80 else ""}"'


def _shower(path: Path) -> Callable[[Any], str]:
    """How a value is written at `path`: 64MiB where bytes are meant, 5m where seconds are."""
    section = _section(path[:-1])
    field = section.model_fields.get(str(path[-1])) if section is not None else None
    for each in field.metadata if field is not None else ():
        if isinstance(each, PlainSerializer):
            return lambda value: each.func(value) if isinstance(value, (int, float)) else str(value)  # pyright: ignore[reportCallIssue, reportUnknownLambdaType, reportUnknownVariableType] - ours take one value
    return lambda value: f"{value:.12g}" if isinstance(value, float) else str(value)


def is_secret(path: Path) -> bool:
    """Whether the value at `path` must never be printed."""
    return any(_holds(each, SecretStr) for each in kinds_at(path))


def _holds(annotation: Any, wanted: type) -> bool:
    return annotation is wanted or any(_holds(part, wanted) for part in get_args(annotation))


def _section(path: Path) -> type[BaseModel] | None:
    return next((each for each in kinds_at(path) if _is_model(each)), None)


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


@lru_cache(maxsize=4096)
def kinds_at(path: Path) -> tuple[Any, ...]:
    """The types that the tree lets a value at this path have, but for null's; none for a path that it does not know."""
    found: tuple[Any, ...] = (Config,)
    for step in path:
        found = tuple(each for kind in found for each in _within(kind, step))
    return found


def _within(kind: Any, step: str | int) -> Iterator[Any]:
    if _is_model(kind):
        field = kind.model_fields.get(str(step))
        if field is not None:
            yield from _members(field.annotation)
    elif get_origin(kind) is dict:
        yield from _members(get_args(kind)[1])
    elif get_origin(kind) in (tuple, list):
        yield from _members(get_args(kind)[0])


def _members(kind: Any) -> Iterator[Any]:
    if get_origin(kind) is Annotated:
        yield from _members(get_args(kind)[0])
    elif get_origin(kind) in (Union, types.UnionType):
        for each in get_args(kind):
            yield from _members(each)
    elif kind is not type(None):
        yield kind
