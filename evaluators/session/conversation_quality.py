"""Conversation quality (Connexity): up to nine criteria for a whole conversation, weighted to one score."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Literal, NotRequired, TypedDict

import msgspec

from evaluators.declare import evaluator
from evaluators.formulas.connexity import (
    PASS_THRESHOLD,
    ConversationVerdict,
    Criterion,
    outcomes,
    resolve_weights,
    verdict,
)
from evaluators.judging.answer_schema import list_schema, object_schema
from evaluators.matching.json_values import list_of, object_of
from evaluators.model import JSON, Score, Session, Trace
from evaluators.resources import Block, Conversation, Question, Weight

_TEXT: JSON = {"type": "string"}
_PART: dict[str, JSON] = {
    "justification": _TEXT,
    "failure_code": {"anyOf": [_TEXT, {"type": "null"}]},
    "turns": list_schema({"type": "integer"}),
}
_SCORED = object_schema({"score": {"type": "integer", "minimum": 0, "maximum": 5}, **_PART})
_PASSED = object_schema({"passed": {"type": "boolean"}, **_PART})
_OUTCOME = object_schema({"passed": {"type": "boolean"}, "justification": _TEXT})

PREAMBLE = """\
Score the whole conversation on each criterion. failure_code = a short snake_case label of what went wrong and turns = \
the numbers of the turns where it shows; null and empty when the criterion is at least acceptable (3 or more, or \
passed)."""
OUTCOMES = """\
expected_outcomes: for each expected outcome of the conversation, in order, whether it was reached."""


class Selected(TypedDict):
    """One chosen criterion; without a weight it has its default."""

    metric: Literal[
        "tool_routing",
        "parameter_extraction",
        "result_interpretation",
        "grounding_fidelity",
        "instruction_compliance",
        "information_gathering",
        "conversation_management",
        "response_delivery",
        "task_completion",
    ]
    weight: NotRequired[Weight | None]


class Qualities(Block, frozen=True, kw_only=True):
    """One part per chosen criterion, named by its id; `verdict` of formulas/connexity.py says what a part must hold."""

    reads_expected = True

    tool_routing: JSON = None
    parameter_extraction: JSON = None
    result_interpretation: JSON = None
    grounding_fidelity: JSON = None
    instruction_compliance: JSON = None
    information_gathering: JSON = None
    conversation_management: JSON = None
    response_delivery: JSON = None
    task_completion: JSON = None
    expected_outcomes: JSON = None

    @classmethod
    def question(cls, subject: Trace | Conversation, options: Mapping[str, JSON]) -> Question:
        chosen = [criterion for criterion, _ in _weights(options["metrics"])]
        parts = {each.name: _PASSED if each.is_binary else _SCORED for each in chosen}
        rubrics = [
            PREAMBLE,
            *(f"{each.name}: {each.description}\n{each.rubric}" for each in chosen),
        ]
        count = len(subject.outcomes) if isinstance(subject, Conversation) else 0
        if count:
            parts["expected_outcomes"] = list_schema(_OUTCOME, count)
            rubrics.append(OUTCOMES)
        return Question(rubric="\n".join(rubrics), schema=object_schema(parts))

    @classmethod
    def check_options(cls, options: Mapping[str, JSON]) -> None:
        """The weights sum to a positive number."""
        _weights(options["metrics"])

    def check(self, subject: Trace | Conversation, options: Mapping[str, JSON]) -> None:
        """Every chosen part is there and keeps to its schema."""
        verdict(msgspec.to_builtins(self), _weights(options["metrics"]))


@evaluator(
    version="1",
    threshold=PASS_THRESHOLD / 100,
    on=False,
    source="Connexity, conversation metrics",
)
def conversation_quality(
    session: Session,
    *,
    conversation: Conversation,
    qualities: Qualities,
    metrics: Sequence[Selected] | None = None,
    pass_threshold: Annotated[float, msgspec.Meta(ge=0, le=100)] = PASS_THRESHOLD,
) -> Score:
    """Weighted criteria as a share of 100; success when the rounded overall score reaches `pass_threshold`."""
    answer = msgspec.to_builtins(qualities)
    found = verdict(answer, _weights(metrics), pass_threshold=pass_threshold)
    parts = {
        each.metric: {k: v for k, v in asdict(each).items() if k != "metric"}
        for each in found.metric_scores
    }
    lost = len(session.turns) - len(conversation.traces)
    return Score(
        value=found.overall_score / 100,
        threshold=pass_threshold / 100,
        success=found.passed,
        explanation=_why(found),
        metadata={
            "overall_score": found.overall_score,
            "passed": found.passed,
            "pass_threshold": pass_threshold,
            **parts,
            "expected_outcomes": outcomes(
                _with_statements(answer, conversation.outcomes), conversation.outcomes
            ),
        },
        coverage=(len(session.turns), len(conversation.traces)) if lost > 0 else None,
    )


def _weights(metrics: Sequence[Selected] | None) -> tuple[tuple[Criterion, float], ...]:
    return resolve_weights(
        None if metrics is None else [(each["metric"], each.get("weight")) for each in metrics]
    )


def _with_statements(answer: JSON, statements: Sequence[str]) -> JSON:
    """The judge answers by place; the statements are the operator's own."""
    entries = [object_of(each) or {} for each in list_of(answer["expected_outcomes"]) or []]
    with_statement = [
        {**each, "statement": text} for each, text in zip(entries, statements, strict=False)
    ]
    return {"expected_outcomes": with_statement}


def _why(found: ConversationVerdict) -> str:
    worst = min(found.metric_scores, key=lambda each: each.score)
    return f"overall {found.overall_score}; lowest: {worst.metric} ({worst.label}): {worst.justification}"
