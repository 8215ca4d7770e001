"""What broke: the tools, model calls and answers of an agent that fail more often than before."""

from collector.slo import expressions as promql
from scripts.dashboard.panels import Query, states, table


def _now(family: str, period: str) -> Query:
    family = f'spanwise_fault_{family}{{period="{period}"}}'
    return Query(expr=f"max by (service, fault, tool) ({family})", unit="short")


FAULTS = states(
    "What broke",
    "Red while a tool, model calls or answers fail more often than before. No band: nothing has failed so for an hour.",
    {0: ("over", "green"), 1: ("fails", "red")},
    Query(expr=promql.FAULTS, legend="{{fault}} {{tool}} ({{service}})"),
)
FAULTS_NOW = table(
    "Faults now",
    "Since when, and in how many of the sessions that used it: since then, and before.",
    {
        "Since": Query(
            expr="1000 * max by (service, fault, tool) (spanwise_fault_since_timestamp_seconds)",
            unit="dateTimeAsIso",
        ),
        "Failed since": _now("failures", "since"),
        "Uses since": _now("uses", "since"),
        "Failed before": _now("failures", "before"),
        "Uses before": _now("uses", "before"),
    },
)
