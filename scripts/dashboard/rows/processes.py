"""The processes: what they receive, what fails inside them, and which versions run."""

from scripts.dashboard.layout import Row
from scripts.dashboard.panels import Query, over_time, table
from scripts.dashboard.promql import PROCESS, events, per_minute

FAULTS = {
    "evaluator workers replaced": "spanwise_worker_restarts_total",
    "rooms that failed": "spanwise_room_failures_total",
    "records that cannot be read": "spanwise_poison_records_total",
    "connections closed": "spanwise_connections_closed_total",
    "names beyond 64": "spanwise_label_overflow_total",
}
"""Counters whose series begin with the first event, by what they are called here."""

PROCESSES = Row(
    title="Processes",
    is_open=False,
    lines=(
        (
            over_time(
                "Spans received",
                "Spans a minute by transport and result. accepted: durable in the log; refused: told to come back.",
                "cpm",
                Query(
                    expr=per_minute("spanwise_spans_received_total", "transport", "result"),
                    legend="{{transport}} {{result}}",
                    variables=PROCESS,
                ),
            ),
            over_time(
                "Requests",
                "Export requests a minute by their answer, and those that were told to come back.",
                "cpm",
                Query(
                    expr=per_minute("spanwise_requests_total", "transport", "code"),
                    legend="{{transport}} {{code}}",
                    variables=PROCESS,
                ),
                Query(
                    expr=events("spanwise_requests_refused_total"),
                    legend="told to come back",
                    variables=PROCESS,
                ),
            ),
            over_time(
                "Requests being taken in",
                "Bytes of the requests in hand. At four times `receiver.max_request` a process refuses more.",
                "bytes",
                Query(
                    expr="max by (instance) (spanwise_in_flight_bytes)",
                    legend="{{instance}}",
                    variables=PROCESS,
                ),
            ),
        ),
        (
            over_time(
                "Faults",
                "Events a minute that should not happen often. docs/operate.md says for each what to do.",
                "cpm",
                *(
                    Query(expr=events(counter), legend=name, variables=PROCESS)
                    for name, counter in FAULTS.items()
                ),
            ),
            over_time(
                "Delay of the event loop",
                "How late a process's heartbeat was. Steadily above 0.1 s: too little CPU.",
                "s",
                Query(
                    expr="max by (instance) (spanwise_event_loop_lag_seconds)",
                    legend="{{instance}}",
                    variables=PROCESS,
                ),
            ),
            over_time(
                "The page's index",
                "Bytes that the page remembers, and the limit (`serve.index`).",
                "bytes",
                Query(
                    expr="max by (instance) (spanwise_index_bytes)",
                    legend="{{instance}}",
                    variables=PROCESS,
                ),
                Query(
                    expr="max by (instance) (spanwise_index_limit_bytes)",
                    legend="{{instance}} limit",
                    variables=PROCESS,
                ),
                dashed="B",
            ),
        ),
        (
            table(
                "Versions that run",
                "Processes by version of Spanwise.",
                {
                    "Processes": Query(
                        expr="count by (job, version) (spanwise_build_info)", variables=PROCESS
                    )
                },
            ),
        ),
    ),
)
