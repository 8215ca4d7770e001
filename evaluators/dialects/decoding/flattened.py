"""Lists that were flattened into attribute keys: `llm.input_messages.0.message.content` and the like."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from evaluators.dialects.decoding.values import as_dict, as_list
from evaluators.model import JSON


def unflatten(names: Iterable[str], get: Callable[[str], JSON], prefix: str) -> list[JSON]:
    """The list whose items' keys begin with `prefix` and an index; items that were evicted leave no hole.

    Args:
        names: All attribute keys of the span.
        get: How to read one of them.
        prefix: Ends with a dot.
    """
    tree: dict[str, JSON] = {}
    size = len(prefix)
    for name in sorted(name for name in names if name.startswith(prefix)):
        _put(tree, name[size:].split("."), get(name))
    return as_list(_collapse(tree))


def _put(tree: dict[str, JSON], path: list[str], value: JSON) -> None:
    for step in path[:-1]:
        inner = tree.get(step)
        if not isinstance(inner, dict):
            inner = tree[step] = {}
        tree = as_dict(inner)
    if not isinstance(tree.get(path[-1]), dict):
        tree[path[-1]] = value


def _collapse(tree: JSON) -> JSON:
    if not isinstance(tree, dict):
        return tree
    item = as_dict(tree)
    if item and all(key.isdecimal() for key in item):
        return [_collapse(item[key]) for key in sorted(item, key=_by_number)]
    return {key: _collapse(value) for key, value in item.items()}


def _by_number(index: str) -> tuple[int, str]:
    return len(index), index
