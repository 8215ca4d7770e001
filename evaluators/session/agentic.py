"""Agentic (Fair Forge): how many of a conversation's interactions were right, with pass@k and pass^k."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Self

import msgspec

from evaluators.counts import amount
from evaluators.declare import evaluator
from evaluators.expectations import Expectation
from evaluators.formulas.pass_k import Mode, Passing, conversation
from evaluators.judging.answer_schema import list_schema, object_schema, strict_schema
from evaluators.matching.tool_match import DEFAULT_WEIGHTS, ToolMatch
from evaluators.model import JSON, Score, Session, Trace
from evaluators.resources import (
    Block,
    Conversation,
    Expected,
    Extraction,
    Question,
    UnitInterval,
    Weight,
)
from evaluators.trace.tool_expectations import match_trace

MOST = 200  # interactions that one call can judge


class Correctness(Block, frozen=True, kw_only=True):
    """How right one interaction's answer was."""

    correctness: UnitInterval
    reason: str | None = None


class Interactions(Block, frozen=True, kw_only=True):
    """Compare the final output of each turn that has an expected output with that expected output.

    1 = same facts and meaning, whatever the wording; 0.5 = partly right; 0 = wrong, contradictory or missing. One
    verdict per turn that has an expected output, in their order.
    """

    reads_expected = True

    verdicts: tuple[Correctness, ...]

    @classmethod
    def question(cls, subject: Trace | Conversation, options: Mapping[str, JSON]) -> Question:
        """Exactly one verdict per interaction."""
        length = len(subject.answered) if isinstance(subject, Conversation) else 0
        verdicts = list_schema(strict_schema(Correctness), length)
        rubric = super().question(subject, options).rubric
        return Question(rubric=rubric, schema=object_schema({"verdicts": verdicts}))

    @classmethod
    def known(cls, subject: Trace | Conversation, extraction: Extraction | None) -> Self | None:
        too_many = isinstance(subject, Conversation) and len(subject.answered) > MOST
        return cls(verdicts=()) if too_many else None

    def check(self, subject: Trace | Conversation, options: Mapping[str, JSON]) -> None:
        """Every interaction has exactly one verdict."""
        count = len(subject.answered) if isinstance(subject, Conversation) else 0
        if len(self.verdicts) != count:
            raise ValueError(f"{len(self.verdicts)} verdicts for {count} interactions")


@evaluator(
    version="1", threshold=0.7, source="Fair Forge, agentic metrics", reads={"session", "text"}
)
def agentic(  # noqa: PLR0913 - the document's options
    session: Session,
    *,
    conversed: Conversation,
    expected: Expected,
    interactions: Interactions,
    k: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 3,
    mode: Mode = "frequentist",
    threshold: UnitInterval = 0.7,
    tool_threshold: UnitInterval = 1.0,
    tool_weights: Mapping[str, Weight] = DEFAULT_WEIGHTS,
    ci_level: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.95,
    beta_prior_a: Annotated[float, msgspec.Meta(gt=0, le=1000)] = 1.0,
    beta_prior_b: Annotated[float, msgspec.Meta(gt=0, le=1000)] = 1.0,
) -> Score:
    """Share of interactions whose answer the judge finds right; success when all are."""
    answered = conversed.answered
    if len(answered) > MOST:
        return Score.not_applicable(f"more than {MOST} interactions with an expected output")
    tools = [
        _tools(trace, expected.traces[trace.trace_id], tool_weights, tool_threshold)
        for trace, _ in answered
    ]
    how = Passing(
        k=k,
        threshold=threshold,
        mode=mode,
        ci_level=ci_level,
        beta_prior_a=beta_prior_a,
        beta_prior_b=beta_prior_b,
    )
    metadata = conversation([each.correctness for each in interactions.verdicts], tools, how)
    metadata["tool_correctness_scores"] = [
        None if each is None else {**asdict(each), "reasoning": each.reasoning} for each in tools
    ]
    return Score(
        value=metadata["correct_interactions"] / metadata["total_interactions"],
        success=metadata["is_fully_correct"],
        explanation=_why(interactions.verdicts, threshold),
        metadata={"session_id": session.session_id, **metadata},
        # A turn that can no longer be read may have had an expected output.
        coverage=(
            len(answered) + max(0, len(session.turns) - len(conversed.traces)),
            len(answered),
        ),
    )


def _tools(
    trace: Trace, expectation: Expectation, weights: Mapping[str, float], threshold: float
) -> ToolMatch | None:
    if expectation.tools is None or not trace.tool_calls:
        return None
    return match_trace(trace, expectation, weights, threshold)


def _why(verdicts: tuple[Correctness, ...], threshold: float) -> str:
    wrong = [
        f"{at}: {each.reason or 'no reason given'}"
        for at, each in enumerate(verdicts, 1)
        if each.correctness < threshold
    ]
    summary = f"{len(verdicts) - len(wrong)} of {amount(len(verdicts), 'interaction')} correct"
    return f"{summary}; wrong: {'; '.join(wrong)}" if wrong else summary
