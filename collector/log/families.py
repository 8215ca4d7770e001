"""The metric families of the log."""

from collector.base.telemetry import Telemetry


class LogFamilies:
    def __init__(self, telemetry: Telemetry) -> None:
        counter, gauge = telemetry.counter, telemetry.gauge
        self.bytes = gauge("log_bytes", "Bytes held by the log, by topic.", "topic")
        self.limit_bytes = gauge(
            "log_limit_bytes", "The share of the log that a topic may use.", "topic"
        )
        self.dropped_records = counter(
            "log_dropped_records",
            "Records that the log dropped to stay within its share.",
            "topic reason",
        )
        self.gap_records = counter(
            "log_gap_records", "Records that expired before a group had read them.", "topic"
        )
        self.lag_records = gauge(
            "log_lag_records",
            "Records that a group has not read or not finished; absent while it is not known. Kafka: in the partitions "
            "that this process owns, or in all while the group has no member.",
            "group topic",
        )
        self.lag_seconds = gauge(
            "log_lag_seconds",
            "Age of the oldest of these records, since it was appended; 0 while nothing waits.",
            "group topic",
        )
