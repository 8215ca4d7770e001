"""The judge: what it is asked, how it answers, what it costs."""

from collector.slo import expressions as promql
from scripts.dashboard.layout import Row
from scripts.dashboard.panels import Query, over_time
from scripts.dashboard.promql import PROCESS, events, per_minute, quantile

JUDGE = Row(
    title="Judge",
    is_open=False,
    lines=(
        (
            over_time(
                "Requests to judges",
                "Requests a minute by how they ended. parse_error: answered, and nothing of it could be scored;"
                " budget_denied: not made.",
                "cpm",
                Query(
                    expr=per_minute("spanwise_judge_requests_total", "model", "result"),
                    legend="{{model}} {{result}}",
                    variables=PROCESS,
                ),
                is_stacked=True,
            ),
            over_time(
                "Duration of requests",
                "Median and 95th percentile of requests to judges.",
                "s",
                Query(
                    expr=quantile(0.5, "spanwise_judge_request_duration_seconds", "model"),
                    legend="{{model}} median",
                    variables=PROCESS,
                ),
                Query(
                    expr=quantile(0.95, "spanwise_judge_request_duration_seconds", "model"),
                    legend="{{model}} 95th percentile",
                    variables=PROCESS,
                ),
            ),
            over_time(
                "Tokens of judges",
                "Tokens a minute that judges counted, by type.",
                "cpm",
                Query(
                    expr=per_minute("spanwise_judge_tokens_total", "model", "type"),
                    legend="{{model}} {{type}}",
                    variables=PROCESS,
                ),
            ),
        ),
        (
            over_time(
                "Judge spend per hour",
                "What judges cost, in USD per hour.",
                "currencyUSD",
                Query(
                    expr="3600 * sum by (model) (rate(spanwise_judge_cost_usd_total[$__rate_interval]))",
                    legend="{{model}}",
                    variables=PROCESS,
                ),
            ),
            over_time(
                "Judge's budget",
                "What may still be spent today, and the limit of a day (`judge.budget.usd_per_day`). Without a budget"
                " there are no lines.",
                "currencyUSD",
                Query(
                    expr="min by (budget) (spanwise_judge_budget_remaining_usd)",
                    legend="{{budget}} left",
                    variables=PROCESS,
                ),
                Query(
                    expr="max by (budget) (spanwise_judge_budget_limit_usd)",
                    legend="{{budget}} limit",
                    variables=PROCESS,
                ),
                dashed="B",
            ),
            over_time(
                "Budget left",
                "Share of the budget that is left. Below a tenth JudgeBudgetLow fires; at 0 judged evaluations are"
                " skipped (reason budget) until the next day.",
                "percentunit",
                Query(expr=promql.BUDGET_LEFT, legend="{{budget}}", variables=PROCESS),
            ),
        ),
        (
            over_time(
                "Judge processes replaced",
                "Judge processes a minute that died, hung or could not be started.",
                "cpm",
                Query(
                    expr=events("spanwise_judge_restarts_total"),
                    legend="replaced",
                    variables=PROCESS,
                ),
            ),
        ),
    ),
)
