"""Plan quality (PandaProbe): was the agent's plan a good one?"""

from typing import Self

from evaluators.declare import pandaprobe
from evaluators.model import JSON, Score, Trace
from evaluators.resources import Block, Conversation, Extraction, UnitInterval


class PlanVerdict(Block, frozen=True, kw_only=True):
    """A judge's score of the plan or of what became of it."""

    score: UnitInterval
    reason: str | None = None

    @classmethod
    def known(cls, subject: Trace | Conversation, extraction: Extraction | None) -> Self | None:
        """Without a plan nothing is judged; the score here is not read."""
        return cls(score=0.0) if extraction is not None and not extraction.plan else None

    def to_score(self, extraction: Extraction) -> Score:
        metadata: dict[str, JSON] = {"task": extraction.task, "plan": list(extraction.plan)}
        if not extraction.plan:
            return Score.assume(1.0, "the trace shows no plan", metadata)
        return Score(value=self.score, explanation=self.reason, metadata=metadata)


class Quality(PlanVerdict, frozen=True, kw_only=True):
    """How good is the plan itself, whether or not it was followed?

    Judge completeness, coherence, optimality, level of detail and alignment with the task. 1 = excellent; 0.75 = minor
    flaws; 0.5 = adequate with notable gaps; 0.25 = significant issues; 0 = does not address the task.
    """


@pandaprobe(version="1")
def plan_quality(trace: Trace, *, extraction: Extraction, quality: Quality) -> Score:
    """How good the agent's plan was, whether or not it was followed."""
    return quality.to_score(extraction)
