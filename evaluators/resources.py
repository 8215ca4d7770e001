"""Resources that an evaluator can ask for by type, beside its trace or session."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Protocol, Self

import msgspec

from evaluators.expectations import Expectation
from evaluators.formulas.agreement import TaskRunsHistory
from evaluators.formulas.work import WorkHistory
from evaluators.judging.answer_schema import strict_schema
from evaluators.judging.quotations import Quotations
from evaluators.model import JSON, Previous, Score, Session, Trace, Turn
from evaluators.uses import Work

UnitInterval = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""A number from 0 to 1, for options and for a judge's answers."""

Weight = Annotated[float, msgspec.Meta(ge=0, le=1000)]
"""A finite, non-negative weight."""


class Vector(Protocol):
    """An embedding: any sequence of floats, numpy arrays included."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[float]: ...


class Embedder(Protocol):
    """Turns texts into vectors. The same text always gives the same vector, whatever is beside it."""

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


class Sketch(msgspec.Struct, frozen=True, kw_only=True):
    """What an evaluator that takes `History` keeps of a trace, so that traces are compared without reading them again.

    A subclass holds all that its evaluator needs of one trace, on either side of a comparison.
    """

    @classmethod
    def of(cls, trace: Trace, embedder: Embedder) -> Self:
        """Of a trace, when it is read."""
        raise NotImplementedError

    def compared(self, previous: Sequence[Any]) -> Score:
        """The score beside the sketches of the traces before it, oldest first, at most `WINDOW`.

        None in place of a sketch: nothing is known of that trace.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierSessions:
    """A session's work, and that of the sessions of its agent that closed before it.

    The agent is (service, agent, first model of the first turn).
    """

    session: int
    """Its number in the history."""
    work: Work
    """Summed over its turns."""
    history: WorkHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRuns:
    """The writes of a session that was a run of a task, and those of the task's runs that ended before it."""

    session: int
    """Its number in the history."""
    writes: tuple[int, ...]
    """Digests of its calls that changed something."""
    has_text: bool
    """Whether its spans carry content."""
    history: TaskRunsHistory | None
    """None: the session names no task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The expectations of a session's traces, by trace id."""

    traces: Mapping[str, Expectation]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A session with its traces, as a judge sees it."""

    session: Session
    traces: tuple[Trace, ...]
    """The turns whose trace can still be read, in the session's order."""
    expected: Mapping[str, Expectation]
    """By trace id; empty when nothing is expected."""

    @property
    def outcomes(self) -> tuple[str, ...]:
        """Expected outcomes of the conversation, each once."""
        every = (
            self.expected[t.trace_id].outcomes for t in self.traces if t.trace_id in self.expected
        )
        return tuple(dict.fromkeys(outcome for some in every for outcome in some))

    @property
    def emphasis(self) -> str | None:
        """The operator's hint on which aspect matters most; None = there is none."""
        every = (
            self.expected[t.trace_id].emphasis for t in self.traces if t.trace_id in self.expected
        )
        return "\n".join(dict.fromkeys(filter(None, every))) or None

    @property
    def answered(self) -> tuple[tuple[Trace, str], ...]:
        """The traces with an expected output, each with that output."""
        pairs = ((trace, self.expected.get(trace.trace_id)) for trace in self.traces)
        return tuple((t, e.output) for t, e in pairs if e is not None and e.output is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The question that a judge answers with one block."""

    rubric: str
    """Trusted text: from code or configuration, never from a trace."""
    schema: JSON
    """Strict JSON Schema of the answer."""
    read_alone: Callable[[str, Quotations], JSON] | None = None
    """Reads an answer without the question's key, for a question that was asked alone, given what of it may be quoted
    from the recording; raises ValueError when there is none. None: an answer without the key is asked for again."""


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge must answer for one evaluator: the fields are the answer, the docstring is the rubric.

    The methods are for blocks whose question depends on the subject or on options; most need none of them.
    """

    reads_expected: ClassVar[bool] = False
    """Whether the judge should see the output that is expected of a trace."""

    @classmethod
    def question(cls, subject: Trace | Conversation, options: Mapping[str, JSON]) -> Question:
        """Rubric and schema for this subject."""
        return Question(rubric=inspect.getdoc(cls) or "", schema=strict_schema(cls))

    @classmethod
    def known(cls, subject: Trace | Conversation, extraction: Extraction | None) -> Self | None:
        """The block where there is nothing to judge, so that no judge is asked; None: ask."""
        return None

    @classmethod
    def check_options(cls, options: Mapping[str, JSON]) -> None:
        """Check constraints between options that their types cannot express; called at start.

        Raises:
            ValueError: The options do not fit together.
        """

    def check(self, subject: Trace | Conversation, options: Mapping[str, JSON]) -> None:
        """Check constraints of the answer that a schema cannot express.

        Raises:
            ValueError: The answer does not fit the subject; the judge is asked once more.
        """


class Extraction(Block, frozen=True, kw_only=True):
    """What the user wanted, what the agent did, and the plan it followed.

    task = the user's goal. outcome = what was actually done, as the steps show it and not as the answer claims.
    plan = the steps of the plan that the agent stated or that its steps imply, in order; empty when there is none.
    """

    task: str
    outcome: str
    plan: tuple[str, ...] = ()


class Judge(Protocol):
    """A model that answers a question; for third parties that want calls of their own."""

    @property
    def model(self) -> str:
        """Name of the model."""
        ...

    async def ask(
        self, instructions: str, question: str, *, read: Callable[[str], object] = str
    ) -> str:
        """The model's answer; raises when there is none.

        `read` raises ValueError for a text that holds no answer: such a text is returned, but kept in no cache.
        """
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
        """Forget a turn; an unknown one is not an error."""

    @property
    def coverage(self) -> tuple[int, int] | None:
        """(expected, present) scores that the formula could have read; None = it reads none."""
        return None

    @property
    def missing(self) -> Mapping[str, int]:
        """How many of the expected scores are not present, by reason (`Turn.unscored_why`)."""
        return {}
