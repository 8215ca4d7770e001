"""Whether an agent is worse than its own past: the drop detector."""

from collector.slo import expressions as promql
from scripts.dashboard.panels import Query, over_time, states, table


def _now(family: str, *, unit: str, factor: str = "") -> Query:
    return Query(expr=f"{factor}max by (service, evaluator) (spanwise_drift_{family})", unit=unit)


DRIFT = states(
    "Drops",
    "Red from the alarm that scores rank lower than in this agent's own past until they are normal again. No band:"
    " fewer than 20 earlier scores, so nothing is compared.",
    {0: ("no change", "green"), 1: ("worse", "red")},
    Query(expr=promql.DRIFT, legend="{{evaluator}} ({{service}})"),
)
PROGRESS = over_time(
    "How near a drop is",
    "0 to 1; at 1 the alarm is raised. Expect some movement: only 1 means something.",
    "percentunit",
    Query(
        expr="max by (service, evaluator) (spanwise_drift_progress_ratio)",
        legend="{{evaluator}} ({{service}})",
    ),
)
NOW = table(
    "Drops now",
    "Since when scores are worse, and at which mean rank of the past they have been since then: 0.50 means no change, 0"
    " the worst (work_baseline: above 0.50 is as bad). Both are there while an alarm lasts. Earlier: past scores.",
    {
        "Since": _now("since_timestamp_seconds", unit="dateTimeAsIso", factor="1000 * "),
        "Mean rank": _now("mean_rank_ratio", unit="percentunit"),
        "Progress": _now("progress_ratio", unit="percentunit"),
        "Earlier": _now("history_samples", unit="short"),
    },
)
