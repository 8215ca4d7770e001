"""From the log to the sinks: what waits, since when, and what is lost."""

from collector.slo import expressions as promql
from scripts.dashboard.layout import Row
from scripts.dashboard.panels import Query, over_time
from scripts.dashboard.promql import PROCESS, events, per_minute

DELIVERY = Row(
    title="Delivery and the log",
    is_open=False,
    lines=(
        (
            over_time(
                "Signals by sink",
                "Signals a minute: acked, retried, lost. A lost one does not come back by itself:"
                " AgentSignalsNotDelivered fires, and `spanwise replay` scores the log's history again.",
                "cpm",
                Query(
                    expr=per_minute("spanwise_signals_total", "sink", "result"),
                    legend="{{sink}} {{result}}",
                    variables=PROCESS,
                ),
            ),
            over_time(
                "Signals not delivered",
                "Signals that a sink has not taken yet.",
                "short",
                Query(
                    expr="sum by (sink) (spanwise_outbox_records)",
                    legend="{{sink}}",
                    variables=PROCESS,
                ),
            ),
            over_time(
                "Oldest signal not delivered",
                "Age of the oldest signal that a sink has not taken. Above 5 minutes AgentSignalsNotDelivered fires."
                " No line: nothing waits.",
                "s",
                Query(expr=promql.OUTBOX_AGE, legend="{{sink}}", variables=PROCESS),
            ),
        ),
        (
            over_time(
                "Records behind",
                "Records that a group has not read or not finished, by group and topic. No line: unknown, which is"
                " not 0.",
                "short",
                Query(
                    expr="sum by (group, topic) (spanwise_log_lag_records)",
                    legend="{{group}} on {{topic}}",
                    variables=PROCESS,
                ),
            ),
            over_time(
                "Time behind",
                "Age of the oldest of these records. assembly and scoring above 10 minutes: AgentScoresStale fires.",
                "s",
                Query(
                    expr="max by (group, topic) (spanwise_log_lag_seconds)",
                    legend="{{group}} on {{topic}}",
                    variables=PROCESS,
                ),
            ),
            over_time(
                "The log's shares",
                "How much of its share of `log.disk.max_size` a topic uses. Kafka has its own limits.",
                "percentunit",
                Query(
                    expr="max by (topic) (spanwise_log_bytes / (spanwise_log_limit_bytes > 0))",
                    legend="{{topic}}",
                    variables=PROCESS,
                ),
            ),
        ),
        (
            over_time(
                "Size of the log",
                "Bytes that a topic holds.",
                "bytes",
                Query(
                    expr="sum by (topic) (spanwise_log_bytes)",
                    legend="{{topic}}",
                    variables=PROCESS,
                ),
                is_stacked=True,
            ),
            over_time(
                "Records dropped",
                "Records a minute that the log dropped to stay within its shares, and that expired before a group had"
                " read them. docs/operate.md says which reasons are normal.",
                "cpm",
                Query(
                    expr=events("spanwise_log_dropped_records_total"),
                    legend="dropped",
                    variables=PROCESS,
                ),
                Query(
                    expr=events("spanwise_log_gap_records_total"),
                    legend="expired unread",
                    variables=PROCESS,
                ),
            ),
        ),
    ),
)
