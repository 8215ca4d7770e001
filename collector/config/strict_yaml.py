"""YAML as Spanwise takes it: PyYAML's safe types, no key twice, and no document that is far more than its text.

An alias stands for a whole node: ten lines of aliases to aliases are a thousand million values. A document is measured
before anything is built of it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import yaml

MAX_ALIASED = 100_000
"""Values that aliases may add to a document."""
MAX_DEPTH = 100
_LONGEST = 100
"""Characters of a number or a date: reading one takes time by the square of its length."""
_TEXT = "tag:yaml.org,2002:str"
_MERGE = "tag:yaml.org,2002:merge"


class NotYaml(ValueError):
    """A text that is not YAML, or not YAML that Spanwise takes. Never shows the text: it may hold a secret.

    `mark`: where.
    """

    def __init__(self, problem: str, mark: yaml.Mark | None = None) -> None:
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        super().__init__(f"{where}: {problem}")


def parse(text: str) -> Any:
    """The value that the text stands for; None for an empty one.

    Raises NotYaml: there is none. Its text begins with `:line:column: ` where that is known.
    """
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _Check().measure(node, "", 1)
        return loader.construct_document(node)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - the stubs leave it untyped
    except yaml.MarkedYAMLError as error:
        raise NotYaml(f"not YAML: {error.problem}", error.problem_mark) from error
    except yaml.YAMLError as error:
        raise NotYaml("not YAML: it holds characters that YAML does not allow") from error
    except RecursionError as error:
        raise NotYaml(f"not YAML: it is nested more than {MAX_DEPTH} deep") from error
    except NotYaml:
        raise
    except ValueError as error:  # a date such as 2001-02-30
        raise NotYaml("not YAML: it holds a number or a date that does not exist") from error


class _Check:
    """Walks every node once; what is behind an alias is measured where it first is."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}
        self._open: set[int] = set()
        self._aliased = 0

    def measure(self, node: yaml.Node, path: str, depth: int) -> int:
        """The number of values that the node stands for, with what its aliases stand for.

        Raises NotYaml: it cannot be taken.
        """
        known = self._sizes.get(id(node))
        if known is not None:
            self._aliased += known
            if self._aliased > MAX_ALIASED:
                raise NotYaml(
                    f"{path}: aliases stand for more than {MAX_ALIASED} values", node.start_mark
                )
            return known
        if id(node) in self._open:
            raise NotYaml(f"{path}: an anchor refers to itself", node.start_mark)
        if depth > MAX_DEPTH:
            raise NotYaml(f"not YAML: it is nested more than {MAX_DEPTH} deep", node.start_mark)
        self._open.add(id(node))
        size = 1 + sum(self.measure(each, at, depth + 1) for at, each in _children(node, path))
        self._open.discard(id(node))
        self._sizes[id(node)] = size
        return size


def _children(node: yaml.Node, path: str) -> Iterator[tuple[str, yaml.Node]]:
    if isinstance(node, yaml.SequenceNode):
        for number, each in enumerate(node.value):
            yield f"{path}[{number}]", each
    elif isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else "?"
            at = f"{path}.{name}" if path else name
            if name in keys and key.tag != _MERGE:
                raise NotYaml(f"{at}: given twice; keep one", key.start_mark)
            if isinstance(key, yaml.ScalarNode):
                keys.add(name)
            yield at, key
            yield at, value
    elif node.tag != _TEXT and len(node.value) > _LONGEST:
        raise NotYaml(f"{path}: a number or date of {len(node.value)} characters", node.start_mark)


def mapped(
    tree: Any, leaf: Callable[[Any], Any], key: Callable[[Any], Any] = lambda name: name
) -> Any:
    """The tree with `leaf` of each value that is neither a mapping nor a list, and `key` of each key."""
    if isinstance(tree, dict):
        children = cast(dict[Any, Any], tree).items()
        return {key(name): mapped(child, leaf, key) for name, child in children}
    if isinstance(tree, (list, tuple)):
        return [mapped(child, leaf, key) for child in cast(list[Any], tree)]
    return leaf(tree)


def unique(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    """A JSON object, for `json.loads`: as strict about its keys. Raises NotYaml: a key occurs twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise NotYaml(f"{twice}: given twice; keep one")
    return found


def in_yaml(value: object) -> str:
    """The value as YAML that people edit: keys in their order, without anchors."""
    return str(
        yaml.dump(value, Dumper=_ExpandedDumper, allow_unicode=True, sort_keys=False, width=110)
    )


class _ExpandedDumper(yaml.SafeDumper):
    """Equal values are written out."""

    def ignore_aliases(self, data: object) -> bool:
        return True
