"""What the index and the live stream count of themselves; each drop has a reason."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

from collector.telemetry import Telemetry


class Families:
    """Families of the API, in the process's registry; made once."""

    def __init__(self, telemetry: Telemetry) -> None:
        registry = telemetry.registry
        self.index_bytes = Gauge(
            "spanwise_index_bytes", "Bytes in use in the API's index.", registry=registry
        )
        self.index_limit_bytes = Gauge(
            "spanwise_index_limit_bytes", "The limit of the API's index.", registry=registry
        )
        self.evicted = Counter(
            "spanwise_index_evicted",
            "Entries that the index forgot to stay within its limits.",
            ("kind", "reason"),
            registry=registry,
        )
        self.refused = Counter(
            "spanwise_index_refused_records",
            "Records that found no room in the index.",
            ("topic",),
            registry=registry,
        )
        self.stream_clients = Gauge(
            "spanwise_stream_clients", "Clients of the live stream now.", registry=registry
        )
        self.stream_dropped = Counter(
            "spanwise_stream_clients_dropped",
            "Clients of the live stream that were let go, by why.",
            ("reason",),
            registry=registry,
        )
