"""The metric families of scoring."""

from collector.base.telemetry import Telemetry


class ScoringFamilies:
    def __init__(self, telemetry: Telemetry) -> None:
        self.sessions_active = telemetry.gauge("sessions_active", "Sessions open now.")
        self.sessions_bytes = telemetry.gauge("sessions_bytes", "Memory of the open sessions.")
        self.sessions_closed = telemetry.counter(
            "sessions_closed", "Sessions closed, by reason.", "service", "reason"
        )
        self.trace_records_dropped = telemetry.counter(
            "trace_records_dropped",
            "Trace records that scoring passed over, by reason: repeated, outdated.",
            "reason",
        )
        self.starts_clamped = telemetry.counter(
            "starts_clamped",
            "Traces that began more than a day after they were seen, by their sender's clock.",
            "service",
        )
