"""Traces and sessions: how they close, what comes late, what they lack, how soon they are scored."""

from collector.slo import expressions as promql
from scripts.dashboard.layout import Row
from scripts.dashboard.panels import Panel, Query, over_time
from scripts.dashboard.promql import PROCESS, SERVICE, per_minute, quantile


def _counted(title: str, description: str, counter: str, label: str) -> Panel:
    return over_time(
        title,
        description,
        "cpm",
        Query(
            expr=per_minute(counter, "service", label),
            legend=f"{{{{service}}}} {{{{{label}}}}}",
            variables=SERVICE,
        ),
        is_stacked=True,
    )


TRACES = Row(
    title="Traces and sessions",
    is_open=False,
    lines=(
        (
            _counted(
                "Traces closed",
                "Traces a minute by reason they closed. root_ended is the normal end; idle: no root came; max_age,"
                " max_spans, max_bytes, memory: a limit cut them off.",
                "spanwise_traces_closed_total",
                "reason",
            ),
            over_time(
                "Traces cut off",
                "The share of the last hour's traces that a limit closed before their end: they are scored from a"
                " part. Above 5 % in six hours AgentTracesIncomplete fires.",
                "percentunit",
                Query(
                    expr=f"{promql.cut_ratio('1h')}\n"
                    "or\n0 * sum by (service) (increase(spanwise_traces_closed_total[1h]))",
                    legend="{{service}}",
                    variables=SERVICE,
                ),
            ),
            _counted(
                "Sessions closed",
                "Sessions a minute by reason they closed. idle is the normal end; memory: a limit was reached.",
                "spanwise_sessions_closed_total",
                "reason",
            ),
        ),
        (
            _counted(
                "Late spans",
                "Spans a minute of traces that were closed already. revised: the trace was scored again; duplicate:"
                " sent twice; ignored: too late. No line: no span came late.",
                "spanwise_late_spans_total",
                "action",
            ),
            _counted(
                "Gaps",
                "Traces a minute that lack something: no_root, no_session, no_content, no_tool_definitions, truncated."
                " `spanwise doctor` names the setting that mends it. No line: no gap.",
                "spanwise_trace_gaps_total",
                "gap",
            ),
            over_time(
                "Age of the newest score",
                "Seconds since a service's newest score. Above 30 minutes with traffic AgentScoresStale fires.",
                "s",
                Query(expr=promql.SCORE_AGE, legend="{{service}}", variables=SERVICE),
            ),
        ),
        (
            over_time(
                "From span to score",
                "Median and 95th percentile of the time from a subject's newest span to its score. Above a minute:"
                " more workers. A judged score comes later than a counted one.",
                "s",
                Query(
                    expr=quantile(0.5, "spanwise_score_lag_seconds", "scope"),
                    legend="{{scope}} median",
                    variables=PROCESS,
                ),
                Query(
                    expr=quantile(0.95, "spanwise_score_lag_seconds", "scope"),
                    legend="{{scope}} 95th percentile",
                    variables=PROCESS,
                ),
            ),
            over_time(
                "Open now",
                "Traces and sessions that are open, and records of traces that wait to be scored.",
                "short",
                Query(expr="sum(spanwise_traces_active)", legend="open traces", variables=PROCESS),
                Query(
                    expr="sum(spanwise_sessions_active)", legend="open sessions", variables=PROCESS
                ),
                Query(
                    expr='sum(spanwise_log_lag_records{group="scoring"})',
                    legend="wait to be scored",
                    variables=PROCESS,
                ),
            ),
            over_time(
                "Memory of what is open",
                "Bytes of open traces and their limit of each process (`windows.memory`), and of open sessions.",
                "bytes",
                Query(expr="max(spanwise_buffer_bytes)", legend="open traces", variables=PROCESS),
                Query(
                    expr="max(spanwise_buffer_limit_bytes)", legend="their limit", variables=PROCESS
                ),
                Query(
                    expr="max(spanwise_sessions_bytes)", legend="open sessions", variables=PROCESS
                ),
                dashed="B",
            ),
        ),
    ),
)
