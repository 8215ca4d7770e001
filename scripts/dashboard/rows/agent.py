"""One agent: how well it does, whether it is worse than its own past, and what is not known of it."""

from collector.slo import expressions as promql
from scripts.dashboard.layout import Row
from scripts.dashboard.panels import Panel, Query, link, over_time
from scripts.dashboard.promql import per_minute, quantile
from scripts.dashboard.rows.drift import DRIFT, NOW, PROGRESS
from scripts.dashboard.rows.faults import FAULTS, FAULTS_NOW
from scripts.dashboard.rows.overview import scored_share

SESSIONS = link("Sessions of this agent", "${page}/sessions?agent=${agent:percentencode}")


def _mean(title: str, evaluator: str, of: str) -> Panel:
    selector = f'{{evaluator="{evaluator}"}}'
    objective = (
        f"max by (service) (spanwise_slo_objective_ratio{selector})\n"
        f'or\n1 - max by (service) (agent:error_budget:ratio{{service=~"$service",agent=~"$agent",'
        f'evaluator="{evaluator}"}})'
    )
    return over_time(
        title,
        f"{of} Mean over the newest sessions (`windows.agent`) with its 95 % bounds, and the objective where one is"
        " set. No line: unknown.",
        "percentunit",
        Query(
            expr=f"max by (service) (spanwise_window_mean_ratio{selector})",
            legend="{{service}} mean",
        ),
        Query(
            expr=f"max by (service) (spanwise_window_lower_bound_ratio{selector})",
            legend="{{service}} lower bound",
        ),
        Query(
            expr=f"max by (service) (spanwise_window_upper_bound_ratio{selector})",
            legend="{{service}} upper bound",
        ),
        Query(expr=objective, legend="{{service}} objective"),
        dashed="BCD",
        links=[SESSIONS],
    )


FAILS = over_time(
    "Failing scores",
    "Failed among passed and failed scores of the random sample, as the alerts count them. Errors and what does not"
    " apply count on neither side. Points are traces that failed: their link leads to the page.",
    "percentunit",
    Query(
        expr=promql.fail_ratio("$__rate_interval"),
        legend="{{evaluator}}",
        has_exemplars=True,
    ),
    links=[SESSIONS],
)
WORST = over_time(
    "Worst scores",
    "The lowest tenth and the median of the scores of traces. Points are the traces with low scores, where their"
    " score is: their link leads to the trace, and from there to its session.",
    "percentunit",
    Query(
        expr=quantile(0.1, "spanwise_score_ratio", "evaluator", only='{scope="trace"}'),
        legend="{{evaluator}} lowest tenth",
        has_exemplars=True,
    ),
    Query(
        expr=quantile(0.5, "spanwise_score_ratio", "evaluator", only='{scope="trace"}'),
        legend="{{evaluator}} median",
    ),
    dashed="B",
    links=[SESSIONS],
)
VERSIONS = over_time(
    "Reliability by version",
    "Mean reliability of each current version (gen_ai.agent.version, else service.version). A version ends once"
    " another one has had sessions for `windows.agent.version_silence` and it had none.",
    "percentunit",
    Query(
        expr="max by (service, agent_version) (spanwise_agent_reliability_ratio)",
        legend="{{agent_version}}",
    ),
)
CONSISTENT_VERSIONS = over_time(
    "Consistency by version",
    "Mean consistency of each current version.",
    "percentunit",
    Query(
        expr="max by (service, agent_version) (spanwise_agent_consistency_ratio)",
        legend="{{agent_version}}",
    ),
)
VERSION_SESSIONS = over_time(
    "Sessions by version",
    "Sessions in the window of each current version, also those without a score.",
    "short",
    Query(
        expr="max by (service, agent_version) (spanwise_version_sessions)",
        legend="{{agent_version}}",
    ),
    is_stacked=True,
)
RUNAWAYS = over_time(
    "Runaway traces",
    "Open traces that repeat one call with the same result (repeated_calls) or call the model far more often than"
    " this agent's traces usually do (model_calls), until they close. No line: no such trace is known.",
    "short",
    Query(expr=promql.RUNAWAYS, legend="{{reason}}"),
    links=[SESSIONS],
)
SCORED = over_time(
    "Sessions scored",
    "The share of this agent's sessions that got a score, of those that were due: the coverage behind its numbers.",
    "percentunit",
    Query(expr=scored_share(), legend="{{service}}"),
)
UNKNOWN = over_time(
    "Unknown",
    "Evaluations that were due and gave no score, a minute: errors, and what was skipped, by reason (budget, judge_lag,"
    " low_coverage ...). They count neither as good nor as bad. No line: none.",
    "cpm",
    Query(
        expr=per_minute('spanwise_evaluations_total{outcome="error"}', "evaluator"),
        legend="{{evaluator}}: error",
    ),
    Query(
        expr=per_minute("spanwise_evaluations_skipped_total", "evaluator", "reason"),
        legend="{{evaluator}}: {{reason}}",
    ),
    is_stacked=True,
)
DURATION = over_time(
    "Duration of traces",
    "Median and 95th percentile, from the first start to the last end.",
    "s",
    Query(
        expr=quantile(0.5, "spanwise_trace_duration_seconds"),
        legend="median",
    ),
    Query(
        expr=quantile(0.95, "spanwise_trace_duration_seconds"),
        legend="95th percentile",
    ),
)
COST = over_time(
    "Cost of traces per hour",
    "What the agent's model calls cost, as its spans say it.",
    "currencyUSD",
    Query(
        expr="3600 * sum by (service) (rate(spanwise_trace_cost_usd_total[$__rate_interval]))",
        legend="{{service}}",
    ),
)
TOKENS = over_time(
    "Tokens of traces",
    "Tokens a minute, by type, as the spans say it.",
    "cpm",
    Query(expr=per_minute("spanwise_trace_tokens_total", "type"), legend="{{type}}"),
)
TASKS = over_time(
    "Task runs",
    "pass@k: the chance that at least one of k runs of a task succeeds. pass^k: that all k do. Far apart: the agent"
    " can, but not reliably. Only of sessions that name a task (`spanwise.task.id`).",
    "percentunit",
    Query(
        expr="max by (service, k) (spanwise_task_pass_at_k_ratio)",
        legend="{{service}} pass@{{k}}",
    ),
    Query(
        expr="max by (service, k) (spanwise_task_pass_pow_k_ratio)",
        legend="{{service}} pass^{{k}}",
    ),
    dashed="B",
)

AGENT_ROW = Row(
    title="Agent $agent",
    repeat="agent",
    lines=(
        (
            _mean("Reliability", "agent_reliability", "How well its sessions go, 0 to 1."),
            _mean("Consistency", "agent_consistency", "How alike its sessions go, 0 to 1."),
            FAILS,
        ),
        (WORST, SCORED, UNKNOWN),
        (FAULTS, FAULTS_NOW),
        (DRIFT, PROGRESS, NOW),
        (VERSIONS, CONSISTENT_VERSIONS, VERSION_SESSIONS),
        (RUNAWAYS, DURATION, TASKS),
        (COST, TOKENS),
    ),
)
