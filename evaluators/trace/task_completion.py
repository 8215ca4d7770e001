"""Task completion (PandaProbe): did the agent do what was asked?"""

from evaluators.declare import pandaprobe
from evaluators.model import Score, Trace
from evaluators.resources import Block, Extraction, UnitInterval


class Completion(Block, frozen=True, kw_only=True):
    """Was the user's task accomplished? Compare the task with what was actually done, not with what was claimed.

    1 = perfectly accomplished; 0.75 to 0.99 = mostly, minor aspects missing; 0.5 to 0.74 = partially;
    0.25 to 0.49 = significant gaps; below 0.25 = not meaningfully addressed.
    """

    verdict: UnitInterval
    reason: str | None = None


@pandaprobe(version="1", reads={"text", "tool_calls", "root"})
def task_completion(trace: Trace, *, extraction: Extraction, completion: Completion) -> Score:
    """Whether the agent accomplished what the user asked for."""
    return Score(
        value=completion.verdict,
        explanation=completion.reason,
        metadata={"task": extraction.task, "outcome": extraction.outcome},
    )
