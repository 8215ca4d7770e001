"""Plan adherence (PandaProbe): did the agent follow its plan?"""

from evaluators.declare import pandaprobe
from evaluators.model import Score, Trace
from evaluators.resources import Extraction
from evaluators.trace.plan_quality import PlanVerdict


class Adherence(PlanVerdict, frozen=True, kw_only=True):
    """How strictly did the execution follow the plan? All steps done, in order, nothing added or skipped.

    1 = exactly; 0.75 = nearly all steps in order; 0.5 = some skipped or reordered; 0.25 = significant deviation;
    0 = little relation to the plan.
    """


@pandaprobe(version="1")
def plan_adherence(trace: Trace, *, extraction: Extraction, adherence: Adherence) -> Score:
    """How closely the agent followed its declared or implied plan."""
    return adherence.to_score(extraction)
