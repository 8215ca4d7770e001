"""The metric families of the receiver."""

from collections.abc import Sequence

from prometheus_client import Counter

from collector.base.telemetry import Telemetry
from collector.otlp.signal import OtlpSignal
from collector.records.otlp_signals import OTLP_SIGNALS


def titled(items: str) -> str:
    return items.replace("_", " ").capitalize()


class ReceiverFamilies:
    def __init__(self, telemetry: Telemetry, signals: Sequence[OtlpSignal] = OTLP_SIGNALS) -> None:
        counter, gauge = telemetry.counter, telemetry.gauge
        self.received = {
            signal.items: counter(
                f"{signal.items}_received",
                f"{titled(signal.items)} that arrived, by what became of them.",
                "transport result",
            )
            for signal in signals
        }
        """By `OtlpSignal.items`; of traces `spanwise_spans_received_total`."""
        self.dropped = {
            signal.items: counter(
                f"{signal.items}_dropped",
                f"{titled(signal.items)} that were taken in and are of no use, by reason.",
                "reason",
            )
            for signal in signals
            if signal.drops
        }
        """The same; only of signals that drop items."""
        self.requests = counter(
            "requests", "Export requests, by how they were answered.", "transport code"
        )
        self.refused = counter(
            "requests_refused",
            "Export requests that were refused for now, by reason.",
            "transport reason",
        )
        self.misdirected = counter(
            "requests_misdirected",
            "Export requests to a wrong port or path, which were answered with the right one, by what was wrong.",
            "transport reason",
        )
        self.requests_dropped = counter(
            "requests_dropped",
            "Export requests of signals that are not taken in: answered OK and dropped unread.",
            "transport signal",
        )
        self.feedback_received = counter(
            "feedback_received", "Feedback that arrived, by what became of it.", "transport result"
        )
        self.strings_repaired = counter(
            "strings_repaired",
            "Strings that were not Unicode and got U+FFFD in place of what is damaged.",
            "transport",
        )
        self.strings_redacted = counter(
            "strings_redacted",
            "Strings with secrets (`redaction.patterns`): `marked` where they were, or one marker as a `whole`.",
            "transport how",
        )
        self.in_flight_bytes = gauge("in_flight_bytes", "Bytes of requests being taken in.")

    def received_child(self, items: str, transport: str, result: str) -> Counter:
        return self.received[items].labels(transport, result)
