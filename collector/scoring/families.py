"""The metric families of scoring."""

from collector.base.telemetry import Telemetry


class ScoringFamilies:
    def __init__(self, telemetry: Telemetry) -> None:
        counter, gauge = telemetry.counter, telemetry.gauge
        self.sessions_active = gauge("sessions_active", "Sessions open now.")
        self.sessions_bytes = gauge("sessions_bytes", "Memory of the open sessions.")
        self.sessions_closed = counter(
            "sessions_closed", "Sessions closed, by reason.", "service reason"
        )
        self.trace_records_dropped = counter(
            "trace_records_dropped",
            "Trace records that scoring passed over, by reason: repeated, outdated.",
            "reason",
        )
        self.starts_clamped = counter(
            "starts_clamped",
            "Traces that began more than a day after they were seen, by their sender's clock.",
            "service",
        )
