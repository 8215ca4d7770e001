"""What scoring needs of the evaluators' plan; `evaluators.run` gives it, tests bring their own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from collector.scoring.judged import JudgedRules
from evaluators.model import Outcome, Session, Turn


class Spec(Protocol):
    """The declaration of one evaluator."""

    @property
    def name(self) -> str:
        """What users call it."""
        ...

    @property
    def needs(self) -> Collection[str]:
        """Resources; "history" is the one that matters here."""
        ...


class Configured(Protocol):
    """One evaluator that runs."""

    @property
    def spec(self) -> Spec:
        """Its declaration."""
        ...

    @property
    def emit(self) -> bool:
        """False: computed only because another evaluator reads it."""
        ...


class Plan(Protocol):
    """Everything that runs."""

    @property
    def trace(self) -> Sequence[Configured]:
        """Of traces."""
        ...

    @property
    def session(self) -> Sequence[Configured]:
        """Of sessions."""
        ...


class SessionScorer(Protocol):
    """The running state of one session's window; its outcomes depend on the set of turns alone."""

    def put(self, turn: Turn) -> None:
        """Add a turn, or replace the one of the same trace id. It comes without its output text."""
        ...

    def drop(self, trace_id: str) -> None:
        """Forget a turn that left the window; an unknown one is no error."""
        ...

    def outcomes(self, session: Session, *, closed: bool) -> tuple[Outcome, ...]:
        """What the session's evaluators say now."""
        ...

    def signals_used(self, evaluator: str) -> tuple[str, ...]:
        """Names of the trace evaluators whose scores this session evaluator reads."""
        ...


NewScorer: TypeAlias = Callable[[], SessionScorer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """All that a desk must know of the plan."""

    new_scorer: NewScorer
    history: int
    """How many earlier turns an evaluator may see."""
    history_takers: tuple[str, ...]
    """Trace evaluators that see them: they run again when the turns before a trace change."""
    emitted: frozenset[str]
    used: Mapping[str, tuple[str, ...]]
    """By session evaluator: the trace evaluators it reads, sorted."""
    judged: JudgedRules = field(default_factory=JudgedRules)
    task_evaluator: str = "agentic"
    """The session evaluator that says whether a task run succeeded, where its spans do not (`tasks.evaluator`)."""

    @classmethod
    def of(
        cls,
        plan: Plan,
        new_scorer: NewScorer,
        history: int,
        judged: JudgedRules | None = None,
        *,
        task_evaluator: str = "agentic",
    ) -> Rules:
        """Read the plan once."""
        judged = judged or JudgedRules()
        scorer = new_scorer()
        every = (*plan.trace, *plan.session, *judged.trace, *judged.session)
        takers = (each.spec.name for each in plan.trace if "history" in each.spec.needs)
        return cls(
            new_scorer=new_scorer,
            history=history,
            history_takers=tuple(takers) if history else (),
            emitted=frozenset(each.spec.name for each in every if each.emit),
            used={
                each.spec.name: tuple(sorted(scorer.signals_used(each.spec.name)))
                for each in plan.session
            },
            judged=judged,
            task_evaluator=task_evaluator,
        )
