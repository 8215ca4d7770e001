"""Judges made of a rubric, as Cogitator's are: a score from 0 to 1 with the reasoning. Users configure their own."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import ClassVar

from evaluators.declare import NAME, Spec
from evaluators.errors import SettingsError
from evaluators.formulas.distribution import clamp
from evaluators.judging.answer_schema import object_schema
from evaluators.judging.answers import read_rating
from evaluators.model import JSON, Scope, Score, Session, Trace
from evaluators.registry import Registry
from evaluators.resources import Block, Conversation, Question

ENDING = (
    "The response is the final output; compare it with the user input and the expected output, if"
    " any. Score from 0 (not at all) to 1 (fully), with short reasoning."
)
_SCHEMA = object_schema(
    {
        "score": {"type": "number", "minimum": 0, "maximum": 1},
        "reasoning": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    }
)


class Judgement(Block, frozen=True, kw_only=True):
    """A score and why. A subclass says what is judged in its docstring, or in `criterion`."""

    reads_expected: ClassVar[bool] = True
    criterion: ClassVar[str] = ""

    score: float  # clamped to [0, 1], as Cogitator promises
    reasoning: str | None = None

    @classmethod
    def question(cls, subject: Trace | Conversation, options: Mapping[str, JSON]) -> Question:
        """The criterion, then Cogitator's ending; asked alone, the answer may be read as Cogitator reads it."""
        rubric = f"{cls.criterion or cls.__doc__}\n{ENDING}"
        return Question(rubric=rubric, schema=_SCHEMA, read_alone=read_rating)

    def to_score(self) -> Score:
        return Score(value=clamp(self.score), explanation=self.reasoning)


def rubric_judge(
    name: str, rubric: str, scope: Scope, threshold: float | None, version: str | None = None
) -> Spec:
    """A judge from the configuration's `judges:`.

    `rubric`: what to judge; trusted. `scope`: of a trace or of a closed session. `version`: None = a digest of the
    rubric, so that a changed rubric is a new version. Raises SettingsError: name, rubric or threshold is not valid; the
    message begins with `judges.<name>`.
    """
    if not NAME.fullmatch(name):
        raise SettingsError(f"judges.{name}: a name is lower_snake_case")
    if not rubric.strip():
        raise SettingsError(f"judges.{name}.rubric: expected a text")
    if threshold is not None and not 0 <= threshold <= 1:
        raise SettingsError(f"judges.{name}.threshold: expected a number from 0 to 1")

    class Own(Judgement, frozen=True, kw_only=True):
        criterion: ClassVar[str] = rubric.strip()

    return Spec(
        name=name,
        scope=scope,
        version=version or hashlib.sha256(rubric.strip().encode()).hexdigest()[:12],
        method="llm_judge",
        resources={"judgement": Own},
        needs=("judge",),
        threshold=threshold,
        doc=rubric.strip(),
        function=_judged,
        source=f"judges.{name} of the configuration",
    )


def with_rubric_judges(registry: Registry, judges: Iterable[Spec]) -> Registry:
    """A registry with these added; the one passed in is unchanged. Raises SettingsError: a name is taken."""
    both = Registry(registry)
    both.broken = registry.broken
    for spec in judges:
        if both.named(spec.name):
            raise SettingsError(f"judges.{spec.name}: there is an evaluator of that name")
        both.add(spec)
    return both


def _judged(_subject: Trace | Session, *, judgement: Judgement) -> Score:
    return judgement.to_score()
