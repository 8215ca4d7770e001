"""All agents that are chosen: what needs somebody now, and each agent's numbers in one line."""

from collector.slo import expressions as promql
from collector.slo.alerts import ALERTS
from scripts.dashboard.layout import Row
from scripts.dashboard.panels import Query, link, number, table
from scripts.dashboard.promql import PROCESS

AGENT_PAGE = (
    "${page}/sessions?service=${__data.fields.service:percentencode}"
    "&agent=${__data.fields.agent:percentencode}"
)
"""The agent's sessions, worst first."""
FIRING = (
    f'ALERTS{{alertname=~"{"|".join(each.name for each in ALERTS)}",alertstate="firing",'
    'service=~"$service|",agent=~"$agent|"}'
)
"""An alert has no label `job`, and `service` and `agent` only where it is about one."""
RELIABILITY = '{evaluator="agent_reliability"}'
CONSISTENCY = '{evaluator="agent_consistency"}'


def _window(of: str, evaluator: str, unit: str = "percentunit") -> Query:
    expr = f"max by (service, agent) (spanwise_window_{of}{evaluator})"
    return Query(expr=expr, unit=unit)


def scored_share(*labels: str) -> str:
    """The share of the sessions due to be scored that were: no error, no score that was skipped.

    What `judge.sample` leaves out was not due.
    """
    by = ", ".join(("service", "agent", *labels))
    due = 'spanwise_evaluations_total{evaluator="agent_reliability",outcome=~"pass|fail|error"}'
    made = due.replace("|error", "")
    skipped = (
        'spanwise_evaluations_skipped_total{evaluator="agent_reliability",reason!="sampled_out"}'
    )

    def rate(counter: str) -> str:
        return f"sum by ({by}) (rate({counter}[$__rate_interval]))"

    both = f"{rate(due)} + {rate(skipped)} or {rate(due)} or {rate(skipped)}"
    return f"({rate(made)} or 0 * ({both})) / (({both}) > 0)"


OVERVIEW = Row(
    title="All agents",
    lines=(
        (
            number(
                "Alerts firing",
                "Alerts of `spanwise slo` that fire now. None: also where these rules are not loaded.",
                "short",
                Query(expr=f"count({FIRING})", variables=()),
                red_from=1,
                without="none",
            ),
            number(
                "Drops",
                "Scores that rank lower than in their agent's own past: (agent, evaluator) pairs with an alarm.",
                "short",
                Query(expr=f"sum({promql.DRIFT})"),
                red_from=1,
            ),
            number(
                "Runaway traces",
                "Open traces that repeat a call or call their model without end.",
                "short",
                Query(expr=f"sum({promql.RUNAWAYS})\nor\n0 * sum(spanwise_window_samples)"),
                red_from=1,
            ),
            number(
                "Sessions scored",
                "The least share of an agent's sessions that got a score, of those that were due. The rest is"
                " unknown: neither good nor bad.",
                "percentunit",
                Query(expr=f"min({scored_share()})"),
            ),
            number(
                "Oldest trace that waits",
                "Age of the oldest spans or trace that are not scored yet. Above 10 minutes AgentScoresStale fires.",
                "s",
                Query(expr=promql.SCORING_AGE, variables=PROCESS),
                red_from=600,
            ),
            number(
                "Judge's budget left",
                "Share of `judge.budget.usd_per_day` that is left today. Below a tenth JudgeBudgetLow fires.",
                "percentunit",
                Query(expr=f"min({promql.BUDGET_LEFT})", variables=PROCESS),
                without="no budget",
            ),
        ),
        (
            table(
                "Agents",
                "The windows of each agent's newest sessions with the 95 % bounds on their mean. Compare bounds, not"
                " means. A click on the agent leads to its sessions.",
                {
                    "Reliability": _window("mean_ratio", RELIABILITY),
                    "Lower": _window("lower_bound_ratio", RELIABILITY),
                    "Upper": _window("upper_bound_ratio", RELIABILITY),
                    "Consistency": _window("mean_ratio", CONSISTENCY),
                    "Sessions": _window("samples", RELIABILITY, "short"),
                    "Drops": Query(expr=f"sum by (service, agent) ({promql.DRIFT})"),
                    "Runaways": Query(expr=f"sum by (service, agent) ({promql.RUNAWAYS})"),
                    "Traces": Query(
                        expr="sum by (service, agent) (increase(spanwise_trace_duration_seconds_count[$__range]))"
                    ),
                    "Cost": Query(
                        expr="sum by (service, agent) (increase(spanwise_trace_cost_usd_total[$__range]))",
                        unit="currencyUSD",
                    ),
                    "Newest score": Query(
                        expr="1000 * max by (service, agent) (spanwise_last_score_timestamp_seconds)",
                        unit="dateTimeAsIso",
                    ),
                },
                cell_links={
                    "agent": [
                        link("Sessions of this agent", AGENT_PAGE),
                        link(
                            "Only this agent here",
                            "/d/${__dashboard.uid}?${__url_time_range}&var-agent=${__data.fields.agent:percentencode}",
                        ),
                    ]
                },
            ),
        ),
        (
            table(
                "Alerts that fire",
                "Which alerts of `spanwise slo` fire now, and about what. docs/alerting.md says what to do.",
                {"Firing": Query(expr=FIRING, variables=())},
                hidden=("alertstate", "Firing"),
            ),
        ),
    ),
)
