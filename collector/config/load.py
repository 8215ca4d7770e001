"""Loading the configuration: files, then environment, then `--set` become one tree; later wins.

Mappings merge, everything else replaces.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin

from pydantic import SecretStr, ValidationError

from collector.base.errors import ConfigError
from collector.base.files import read_regular
from collector.base.printable import one_line
from collector.config.crosscheck import crosscheck
from collector.config.problems import kinds_at, problems, unknown, unusable
from collector.config.strict_yaml import NotYaml, mapped, parse
from collector.config.tree import Config

# Values that are given as text (environment, `--set`, a lone `${env:NAME}`), read as the tree wants them.
#
# Where the tree wants a text, the text is taken as it is, without white space at its ends: a secret may begin with `#`
# and a host may be `::`. Anywhere else the text is read as YAML.

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
        return mapped(parse(text), lambda each: GivenText(each) if isinstance(each, str) else each)
    except NotYaml:
        return GivenText(text)


def wants_text(path: tuple[str | int, ...]) -> bool:
    """Whether the tree wants a text at this path, or a text or null; false for what it does not know."""
    wanted = kinds_at(path)
    return bool(wanted) and all(map(_is_text, wanted))


def _is_text(kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return all(isinstance(each, str) for each in get_args(kind))
    return isinstance(kind, type) and issubclass(kind, _TEXTS)


Tree = dict[str, Any]
PREFIX = "SPANWISE_"
MAX_FILE = 1 << 20
"""Bytes of a file of settings."""

_RESERVED = re.compile(
    r"SPANWISE_(GOLDEN|(LOG_)?CAPTURES|LABELLED|TEST_\w+|KAFKA_LIBS|REQUIRE_\w+)"
)
# What Kubernetes puts into every pod beside a service whose name starts with `spanwise`.
_SERVICE_LINK = re.compile(r"SPANWISE_(\w+_)?(SERVICE_(HOST|PORT)\w*|PORT_\d+_(TCP|UDP|SCTP)\w*)")
_REFERENCE = re.compile(r"\$\$|\$\{env:([A-Za-z_]\w*)(?::-([^}\n]*))?\}|\$\{[^}\n]*\}?")
_SHIELD = re.compile("\ue000([0-9]{1,6})\ue001")


def load(
    files: Sequence[Path],
    environ: Mapping[str, str],
    overrides: Sequence[str],
    settings: Mapping[str, Any] | None = None,
) -> Config:
    """The configuration that these sources make; `settings` is a tree from a program, which wins over all others.

    Raises ConfigError: the message holds every bad field, one line each, beginning with its path.
    """
    tree, wrong = _merged(files, environ, overrides)
    tree = merge(tree, settings or {})
    tree, unfilled = substitute(tree, environ)
    config, invalid = _validated(cast(Tree, tree))
    wrong = _without_repeats([*wrong, *unfilled, *invalid])
    if config is None or wrong:
        raise ConfigError("\n".join(map(one_line, wrong)))
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
    section, _, rest = key.partition("_")
    if section in Config.model_fields and rest:
        return f"no such setting; did you mean {PREFIX}{section.upper()}__{rest.upper()}?"
    return f"no such setting: {unknown(key, Config)}"


def _validated(tree: Tree) -> tuple[Config | None, list[str]]:
    """The tree as a `Config`, or what is wrong with it."""
    # Plain texts, and texts as keys: YAML's may be numbers.
    plain = mapped(tree, lambda each: str(each) if isinstance(each, GivenText) else each, str)
    if wrong := unusable(plain):
        return None, wrong  # pydantic cannot even report on them
    try:
        return Config.model_validate(plain), []
    except ValidationError as error:
        return None, problems(error.errors(include_url=False), plain)


def _without_repeats(lines: Sequence[str]) -> list[str]:
    """A field whose reference could not be filled in is not also called invalid."""
    said: dict[str, str] = {}
    for line in lines:
        said.setdefault(line.partition(": ")[0], line)
    return list(said.values())


def merge(base: Tree, over: Mapping[str, Any]) -> Tree:
    """`base` with `over` on top."""
    merged = dict(base)
    for key, value in over.items():
        if isinstance(value, dict):
            before = merged.get(key)
            under = cast(Tree, before) if isinstance(before, dict) else {}
            merged[key] = merge(under, cast(Tree, value))
        else:
            merged[key] = value
    return merged


def from_file(path: Path) -> Tree | str:
    """The file's tree, or one line saying why there is none."""
    try:
        tree = _parsed(_text(read_regular(path, most=MAX_FILE)))
    except FileNotFoundError:
        return f"{path}: no such file"
    except OSError as error:
        return f"{path}: cannot be read ({error.strerror})"
    except NotYaml as error:
        return f"{path}{error}"
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        kind = "list" if isinstance(tree, list) else "single value"
        return f"{path}: expected a mapping of settings such as `log:`, got a {kind}"
    return cast(Tree, tree)


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotYaml("not YAML: it is not UTF-8") from error


def _parsed(text: str) -> Any:
    """YAML whose references are behind shields: `{key: ${env:NAME}}` would not be YAML otherwise."""
    shielded: list[str] = []

    def shield(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return match[0]
        shielded.append(match[0])
        return f"\ue000{len(shielded) - 1}\ue001"

    def reference(match: re.Match[str]) -> str:
        number = int(match[1])  # the file may hold such characters itself
        return shielded[number] if number < len(shielded) else match[0]

    def unshielded(value: Any) -> Any:
        return _SHIELD.sub(reference, value) if isinstance(value, str) else value

    return mapped(parse(_REFERENCE.sub(shield, text)), unshielded, unshielded)


def from_environment(environ: Mapping[str, str]) -> Tree:
    """The tree of all SPANWISE_<PATH>; `__` is between levels, case means nothing."""
    tree: Tree = {}
    for name in sorted(environ):
        if is_setting(name, environ[name]):
            path = name.upper().removeprefix(PREFIX).lower().split("__")
            tree = merge(tree, _nested(path, as_wanted(path, environ[name])))
    return tree


def is_setting(name: str, value: str) -> bool:
    upper = name.upper()
    if not upper.startswith(PREFIX) or _RESERVED.fullmatch(upper):
        return False
    if "__" in upper:
        return True
    linked = upper.endswith("_PORT") and re.match(r"(tcp|udp|sctp)://", value) is not None
    return not linked and _SERVICE_LINK.fullmatch(upper) is None


def from_overrides(overrides: Sequence[str]) -> tuple[Tree, list[str]]:
    """The tree of all `a.b=c`, and one line for each that is not of that form."""
    tree: Tree = {}
    wrong: list[str] = []
    for override in overrides:
        path, equals, value = override.partition("=")
        levels = [level.strip() for level in path.split(".")]
        if not equals or not all(levels):
            wrong.append(f'--set {path}: expected path=value such as admin.port=4391, got "{path}"')
            continue
        tree = merge(tree, _nested(levels, as_wanted(levels, value)))
    return tree, wrong


def substitute(tree: Any, environ: Mapping[str, str], path: str = "") -> tuple[Any, list[str]]:
    """The tree with its `${env:NAME}` filled in, and one line for each that cannot be."""
    wrong: list[str] = []

    def within(value: Any, path: str, levels: tuple[str | int, ...]) -> Any:
        if isinstance(value, dict):
            return {
                key: within(child, f"{path}.{key}" if path else str(key), (*levels, str(key)))
                for key, child in cast(dict[Any, Any], value).items()
            }
        if isinstance(value, list):
            return [
                within(child, f"{path}[{at}]", (*levels, at))
                for at, child in enumerate(cast(list[Any], value))
            ]
        if not isinstance(value, str) or isinstance(value, GivenText):
            return value
        filled = _filled(value, environ, path, wrong)
        whole = _REFERENCE.fullmatch(value)
        is_given = whole is not None and whole[0] != "$$"
        return as_wanted(levels, filled) if is_given else filled

    return within(tree, path, ()), wrong


def _filled(value: str, environ: Mapping[str, str], path: str, wrong: list[str]) -> str:
    def fill(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        name, default = match[1], match[2]
        if name is None:
            inner = match[0][2:].rstrip("}")
            wrong.append(
                f'{path}: "{match[0]}" is not a reference; write ${{env:{inner or "NAME"}}}, '
                "or $${ for the characters themselves"
            )
            return ""
        if not environ.get(name) and default is not None:
            return default
        if name not in environ:
            wrong.append(
                f"{path}: the environment variable {name} is not set; "
                f"set it, or give a default: ${{env:{name}:-default}}"
            )
        return environ.get(name, "")

    return _REFERENCE.sub(fill, value)


def _nested(levels: Iterable[str], value: Any) -> Tree:
    first, *rest = levels
    return {first: _nested(rest, value) if rest else value}
