"""Loading the configuration: files, then environment, then `--set`; later wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from collector.config.crosscheck import crosscheck
from collector.config.problems import path_of, problems, unknown
from collector.config.sources import (
    PREFIX,
    Text,
    Tree,
    from_environment,
    from_file,
    from_overrides,
    merge,
    opened,
    substitute,
)
from collector.config.tree import Config
from collector.errors import ConfigError

_TEXTUAL = frozenset({"string_type", "path_type"})


def load(files: Sequence[Path], environ: Mapping[str, str], overrides: Sequence[str]) -> Config:
    """The configuration that these sources make.

    Raises:
        ConfigError: The message holds every bad field, one line each, beginning with its path.
    """
    tree, wrong = _merged(files, environ, overrides)
    tree, unfilled = substitute(tree, environ)
    config, invalid = _validated(cast(Tree, tree))
    wrong = _without_repeats([*wrong, *unfilled, *invalid])
    if config is None or wrong:
        raise ConfigError("\n".join(wrong))
    if conflicts := crosscheck(config):
        raise ConfigError("\n".join(conflicts))
    return config


def _merged(
    files: Sequence[Path], environ: Mapping[str, str], overrides: Sequence[str]
) -> tuple[Tree, list[str]]:
    tree: Tree = {}
    wrong: list[str] = []
    for path in files:
        read = from_file(path)
        if isinstance(read, str):
            wrong.append(read)
        else:
            tree = merge(tree, read)
    given = from_environment(environ)
    for key in sorted(given.keys() - Config.model_fields.keys()):
        name = f"{PREFIX}{key.upper()}"
        wrong.append(f"{name}: {_no_such_variable(key)}")
        del given[key]
    set_tree, malformed = from_overrides(overrides)
    return merge(merge(tree, given), set_tree), [*wrong, *malformed]


def _no_such_variable(key: str) -> str:
    """`SPANWISE_ADMIN_PORT` wants to be `SPANWISE_ADMIN__PORT`."""
    section, _, rest = key.partition("_")
    if section in Config.model_fields and rest:
        return f"no such setting; did you mean {PREFIX}{section.upper()}__{rest.upper()}?"
    return f"no such setting: {unknown(key, Config)}"


def _validated(tree: Tree) -> tuple[Config | None, list[str]]:
    """The tree as a `Config`, or what is wrong with it.

    A text that YAML reads as a number, where a text is wanted (an API key of digits), is taken as it was given.
    """
    plain = _plain(tree, frozenset())
    try:
        return Config.model_validate(plain), []
    except ValidationError as error:
        texts = frozenset(
            path_of(detail, plain) for detail in error.errors() if detail["type"] in _TEXTUAL
        )
    plain = _plain(tree, texts)
    try:
        return Config.model_validate(plain), []
    except ValidationError as error:
        return None, problems(error.errors(include_url=False), plain)


def _plain(value: Any, texts: frozenset[tuple[str | int, ...]], path: tuple[Any, ...] = ()) -> Any:
    if isinstance(value, dict):
        children = cast(dict[Any, Any], value)
        return {
            str(key): _plain(child, texts, (*path, str(key))) for key, child in children.items()
        }
    if isinstance(value, list):
        return [
            _plain(child, texts, (*path, at)) for at, child in enumerate(cast(list[Any], value))
        ]
    if isinstance(value, Text):
        return str(value) if path in texts else opened(value)
    return value


def _without_repeats(lines: Sequence[str]) -> list[str]:
    """A field whose reference could not be filled in is not also called invalid."""
    said: dict[str, str] = {}
    for line in lines:
        said.setdefault(line.partition(": ")[0], line)
    return list(said.values())
