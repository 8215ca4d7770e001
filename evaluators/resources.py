"""What an evaluator can ask for by type, beside its trace or session (DESIGN section 3, "Evaluators")."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

import msgspec

from evaluators.model import JSON, Previous, Turn

UnitInterval = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""A number from 0 to 1, for options and for a judge's answers."""

Weight = Annotated[float, msgspec.Meta(ge=0, le=1000)]
"""A finite, non-negative weight."""


class Vector(Protocol):
    """An embedding: any sequence of floats, numpy arrays included."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[float]: ...


class Embedder(Protocol):
    """Turns texts into vectors. The same text always gives the same vector, whatever stands beside it."""

    @property
    def model(self) -> str:
        """Name of the model: part of every embedded signal's id."""
        ...

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """One vector per text, in order."""
        ...


@dataclass(frozen=True, slots=True)
class History:
    """The traces before this one in its session, oldest first, at most `WINDOW` of them."""

    previous: tuple[Previous, ...] = ()


WINDOW = 3
"""How many earlier traces a `History` holds (PandaProbe's loop detection)."""


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge must answer for one evaluator: the fields are the answer, the docstring is the rubric."""


class Extraction(Block, frozen=True, kw_only=True):
    """What the user wanted, what the agent did, and the plan it followed; shared by all judged evaluators."""

    task: str
    outcome: str
    plan: tuple[str, ...] = ()


class Judge(Protocol):
    """A model that answers a question; for third parties that want calls of their own."""

    @property
    def model(self) -> str:
        """Name of the model."""
        ...

    async def ask(self, instructions: str, question: str) -> str:
        """The model's answer; raises when there is none."""
        ...


class Running(ABC):
    """A session evaluator's state, kept up to date turn by turn so that a score costs no walk over the session.

    Its value depends on the set of turns put and not dropped, never on their order. A subclass is made with the
    evaluator's options, once per session.
    """

    @abstractmethod
    def __init__(self, options: Mapping[str, JSON]) -> None: ...

    @abstractmethod
    def put(self, turn: Turn) -> None:
        """Take in a turn; one of the same trace id is replaced."""

    @abstractmethod
    def drop(self, trace_id: str) -> None:
        """Forget a turn; an unknown one is no error."""

    @property
    def coverage(self) -> tuple[int, int] | None:
        """(expected, present) scores that the formula could have read; None = it reads none."""
        return None
