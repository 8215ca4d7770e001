"""Answers that depend on a span's keys only, worked out once for all spans that carry the same keys.

An instrumentation writes the same few sets of keys over and over. Which of them a reader wants does not depend on the
values, so it is asked once per set and remembered. `unflatten` reads lists that were flattened into keys.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from evaluators.dialects.decoding.values import as_dict, as_list
from evaluators.model import JSON

_SHAPES = 1_024
_KEYS = 64
"""A set with more keys is not remembered: flattened conversations hardly ever repeat one."""


Question = Callable[[AbstractSet[str]], Any]
"""A question about keys alone: its answer never changes for equal keys. Make one per module, not per call."""


class Among:
    """Which of some keys are there, in the order given."""

    __slots__ = ("keys",)

    def __init__(self, *keys: str) -> None:
        self.keys = keys

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys)

    def __call__(self, names: AbstractSet[str]) -> tuple[str, ...]:
        return tuple(key for key in self.keys if key in names)


@dataclass(slots=True, eq=False)
class Prefix:
    """Whether a key begins so."""

    text: str

    def __call__(self, names: AbstractSet[str]) -> bool:
        return any(name.startswith(self.text) for name in names)


def either(*questions: Question) -> Question:
    """Whether at least one of some questions has an answer: asked first where hardly any span has one."""
    return lambda names: any(question(names) for question in questions)


class Shape(dict[Question, Any]):
    """The keys of a span, and what is known of them: `shape[question]` answers, remembering the answer."""

    __slots__ = ("names", "readers")

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__()
        self.names = names
        self.readers: dict[str | tuple[str, bool], Any] = {}
        """Instrumentation scope, with True for a span with events -> who reads such a span (`registry`)."""

    def __missing__(self, question: Question) -> Any:
        answer = self[question] = question(self.names)
        return answer


_by_names: dict[frozenset[str], Shape] = {}
_expected: dict[tuple[str, int], Shape] = {}
"""Name and number of keys -> the shape that such a map had last: to look for its keys costs a third of reading them."""
_NAME = 128  # characters of a name under which a shape is expected


def shape_of_map(raw: Collection[str], name: str) -> Shape:
    """The shape of the keys of a protobuf map. `name` is of what it belongs to: equal names mostly mean equal keys."""
    like = (name, len(raw))
    shape = _expected.get(like)
    if shape is not None and all(map(raw.__contains__, shape.names)):
        return shape  # as many keys, and all of them
    shape = shape_of(frozenset(raw))
    if len(shape.names) <= _KEYS and len(name) <= _NAME:
        if len(_expected) >= _SHAPES:
            _expected.clear()
        _expected[like] = shape
    return shape


def shape_of(names: frozenset[str]) -> Shape:
    """The one shape of these keys; a new one where there are too many keys or shapes to remember."""
    shape = _by_names.get(names)
    if shape is None:
        shape = Shape(names)
        if len(names) <= _KEYS:
            if len(_by_names) >= _SHAPES:
                _by_names.clear()
            _by_names[names] = shape
    return shape


def forget_shapes() -> None:
    """What is known of all keys is worked out again: for who changes which dialects there are."""
    _by_names.clear()
    _expected.clear()


# --- flattened lists: `llm.input_messages.0.message.content` and the like --------------------------------------------


def unflatten(names: Iterable[str], get: Callable[[str], JSON], prefix: str) -> list[JSON]:
    """The list whose items' keys begin with `prefix` and an index; items that were evicted leave no hole.

    `names`: all attribute keys of the span. `get`: how to read one of them.
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
        return [_collapse(item[key]) for key in sorted(item, key=lambda index: (len(index), index))]
    return {key: _collapse(value) for key, value in item.items()}
