"""What happens to agents, and which alerts it raises. Minutes; 0+1x60 counts one event a minute."""

from collections.abc import Mapping

RELIABILITY = {
    "service": "shop",
    "agent": "clerk",
    "evaluator": "agent_reliability",
    "scope": "session",
}
TOOLS = {**RELIABILITY, "evaluator": "tool_correctness", "scope": "trace"}
JUDGED = {**RELIABILITY, "evaluator": "task_completion", "scope": "trace"}


def of(family: str, labels: Mapping[str, str], **more: str) -> str:
    """A series."""
    inside = ",".join(f'{name}="{value}"' for name, value in {**labels, **more}.items())
    return f"spanwise_{family}{{{inside}}}"


def counted(labels: Mapping[str, str], outcome: str, sample: str = "base", **more: str) -> str:
    """Of the SLI."""
    return of("evaluations_total", labels, sample=sample, outcome=outcome, **more)


def page(labels: Mapping[str, str]) -> dict[str, str]:
    """What such an alert carries."""
    return {**labels, "severity": "page"}


def ticket(labels: Mapping[str, str]) -> dict[str, str]:
    """What such an alert carries."""
    return {**labels, "severity": "ticket"}


def silent(*times: str) -> dict[str, dict[str, list[dict[str, str]]]]:
    """No alert at these times."""
    return {time: {} for time in times}


def window(labels: Mapping[str, str], upper: str, samples: str, **more: str) -> dict[str, str]:
    """The gauges of a window."""
    return {
        of("window_upper_bound_ratio", labels, **more): upper,
        of("window_samples", labels, **more): samples,
    }


NAN = " ".join(["NaN"] * 60)
"""promtool has no shorter word for it."""

FAST, SLOW, DRAINING = "AgentQualityFastBurn", "AgentQualitySlowBurn", "AgentQualityBudgetDraining"
BELOW, DROP, RUNAWAY = "AgentReliabilityBelowObjective", "AgentScoreDrop", "AgentRunaway"
FAULT = "AgentFault"
BLIND, STALE, BUDGET = "AgentEvaluatorBlind", "AgentScoresStale", "JudgeBudgetLow"
INCOMPLETE, UNDELIVERED = "AgentTracesIncomplete", "AgentSignalsNotDelivered"
DROPPED, BY_CHANCE = "AgentNoticesDropped", "AgentJudgeByChance"
TOO_MANY_ERRORS = {BLIND: [ticket({"evaluator": "task_completion"})]}
"""What fires when an evaluator mostly fails."""
