"""Answers that depend on a span's keys only, worked out once for all spans that carry the same keys.

An instrumentation writes the same few sets of keys over and over. Which of them a reader wants does not depend on the
values, so it is asked once per set and remembered.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

_SHAPES = 1_024
_KEYS = 64
"""A set with more keys is not remembered: flattened conversations hardly ever repeat one."""


class Question(ABC):
    """A question about keys alone. Compared by identity: make one per module, not per call."""

    __slots__ = ()

    @abstractmethod
    def answer(self, names: AbstractSet[str]) -> Any:
        """The answer for these keys; never changes for equal keys."""


class Among(Question):
    """Which of some keys are there, in the order given."""

    __slots__ = ("keys",)

    def __init__(self, *keys: str) -> None:
        self.keys = keys

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys)

    def answer(self, names: AbstractSet[str]) -> tuple[str, ...]:
        """Those of `names`."""
        return tuple(key for key in self.keys if key in names)


class Prefix(Question):
    """Whether a key begins so."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def answer(self, names: AbstractSet[str]) -> bool:
        """Whether one of `names` does."""
        return any(name.startswith(self.text) for name in names)


class Either(Question):
    """Whether at least one of some questions has an answer: asked first where hardly any span has one."""

    __slots__ = ("_questions",)

    def __init__(self, *questions: Question) -> None:
        self._questions = questions

    def answer(self, names: AbstractSet[str]) -> bool:
        """Whether one does."""
        return any(question.answer(names) for question in self._questions)


class Shape(dict[Question, Any]):
    """The keys of a span, and what is known of them: `shape[question]` answers, remembering the answer."""

    __slots__ = ("names", "readers")

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__()
        self.names = names
        self.readers: dict[str, Any] = {}
        """Instrumentation scope -> who reads such a span (see detect)."""

    def __missing__(self, question: Question) -> Any:
        answer = self[question] = question.answer(self.names)
        return answer


_by_names: dict[frozenset[str], Shape] = {}


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
