"""The metric families of the index and of the live stream."""

from __future__ import annotations

from collector.base.telemetry import Telemetry


class ApiFamilies:
    """The size of the index, what it dropped, and the clients of the stream."""

    def __init__(self, telemetry: Telemetry) -> None:
        self.index_bytes = telemetry.gauge("index_bytes", "Bytes in use in the API's index.")
        self.index_limit_bytes = telemetry.gauge(
            "index_limit_bytes", "The limit of the API's index."
        )
        self.evicted = telemetry.counter(
            "index_evicted",
            "Entries that the index forgot to stay within its limits.",
            "kind",
            "reason",
        )
        self.refused = telemetry.counter(
            "index_refused_records", "Records that found no room in the index.", "topic"
        )
        self.answers_refused = telemetry.counter(
            "answers_refused", "Pages and API answers that were refused, by why.", "reason"
        )
        self.stream_clients = telemetry.gauge("stream_clients", "Clients of the live stream now.")
        self.stream_dropped = telemetry.counter(
            "stream_clients_dropped",
            "Clients of the live stream that were let go, by why.",
            "reason",
        )
