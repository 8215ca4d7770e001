"""Values that are given as text (environment, `--set`, a lone `${env:NAME}`), read as the tree wants them.

Where the tree wants a text, the text is taken as it is, without white space at its ends: a secret may begin with `#`
and a host may be `::`. Anywhere else the text is read as YAML.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from pydantic import BaseModel, SecretStr

from collector.config.strict_yaml import NotYaml, parse
from collector.config.tree import Config

_TEXTS = (str, SecretStr, Path)


class GivenText(str):
    """A text in which no `${env:NAME}` is filled in: it came from the environment or the command line."""

    __slots__ = ()


def as_wanted(path: Sequence[str | int], text: str) -> Any:
    """The value of a setting that is given as text; an empty one is null."""
    stripped = text.strip()
    if not stripped:
        return None
    if wants_text(tuple(path)):
        return GivenText(stripped)
    try:
        return _given(parse(text))
    except NotYaml:
        return GivenText(text)


def _given(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _given(child) for key, child in cast(dict[Any, Any], value).items()}
    if isinstance(value, list):
        return [_given(child) for child in cast(list[Any], value)]
    return GivenText(value) if isinstance(value, str) else value


@lru_cache(maxsize=4096)
def wants_text(path: tuple[str | int, ...]) -> bool:
    """Whether the tree wants a text at this path, or a text or null; false for what it does not know."""
    wanted: tuple[Any, ...] = (Config,)
    for step in path:
        wanted = tuple(each for kind in wanted for each in _within(kind, step))
    return bool(wanted) and all(map(_is_text, wanted))


def _within(kind: Any, step: str | int) -> Iterator[Any]:
    """The types that a member of this type may have; not the one of null."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
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


def _is_text(kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return all(isinstance(each, str) for each in get_args(kind))
    return isinstance(kind, type) and issubclass(kind, _TEXTS)
