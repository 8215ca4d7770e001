"""Metric families of the sinks."""

from collector.base.telemetry import Telemetry


class SinkFamilies:
    def __init__(self, telemetry: Telemetry) -> None:
        self.signals = telemetry.signals
        """By result: `acked`, `retried`, `lost`; `unmatched`: the tool never had their trace or session."""
        self.feedback = telemetry.counter(
            "feedback_handed_on", "Feedback handed to a sink, by what became of it.", "sink result"
        )
        self.outbox_records = telemetry.gauge(
            "outbox_records", "Signals that a sink has not delivered yet.", "sink"
        )
        self.outbox_oldest = telemetry.gauge(
            "outbox_oldest_timestamp_seconds",
            "Log time of the oldest signal that a sink has not delivered; absent when there is none.",
            "sink",
        )
