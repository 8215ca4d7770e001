"""Plan adherence (PandaProbe): did the agent follow its plan?"""

from __future__ import annotations

from typing import Self

from evaluators.declare import evaluator
from evaluators.model import JSON, Score, Trace
from evaluators.resources import Block, Conversation, Extraction, UnitInterval


class Adherence(Block, frozen=True, kw_only=True):
    """How strictly did the execution follow the plan? All steps done, in order, nothing added or skipped.

    1 = exactly; 0.75 = nearly all steps in order; 0.5 = some skipped or reordered; 0.25 = significant deviation;
    0 = little relation to the plan.
    """

    score: UnitInterval
    reason: str | None = None

    @classmethod
    def known(cls, subject: Trace | Conversation, extraction: Extraction | None) -> Self | None:
        """Without a plan nothing is judged; the score here is not read."""
        return cls(score=0.0) if extraction is not None and not extraction.plan else None


@evaluator(
    version="1",
    verdict_in_metadata=True,
    source="PandaProbe, evaluation metrics",
    reads={"text", "tool_calls"},
)
def plan_adherence(trace: Trace, *, extraction: Extraction, adherence: Adherence) -> Score:
    """How closely the agent followed its declared or implied plan."""
    metadata: dict[str, JSON] = {"task": extraction.task, "plan": list(extraction.plan)}
    if not extraction.plan:
        return Score.assume(1.0, "the trace shows no plan", metadata)
    return Score(value=adherence.score, explanation=adherence.reason, metadata=metadata)
