"""The registry of a process's metric families. Each room declares its own in a file `families.py`.

collector/wiring/families.py lists them all; families about agents belong to role `publish` alone.

The registry is an object, never prometheus-client's global one. Label values come from closed sets; `service` alone is
open and is bounded: the first 64 keep their name, later ones become `_other` and are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder

disable_created_metrics()  # `_created` series would double what is scraped and say nothing we alert on
MAX_SERVICES = 64
OTHER = "_other"
_F = TypeVar("_F", Counter, Gauge, Histogram)


class Telemetry:
    """The process families, made once per process and handed to every room."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = CollectorRegistry(auto_describe=True) if registry is None else registry
        self._services: set[str] = set()
        self._families: dict[str, object] = {}

        self.label_overflow = self.counter(
            "label_overflow", "Label values folded into _other or dropped.", "label"
        )
        self.build = Info("spanwise_build", "The running version.", registry=self.registry)

    def service(self, name: str) -> str:
        """The label value for a service: its name, or `_other` above the cap."""
        if name in self._services:
            return name
        if len(self._services) >= MAX_SERVICES:
            self.label_overflow.labels("service").inc()
            return OTHER
        self._services.add(name)
        return name

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """All families in the format that the `Accept` header asks for, and its content type.

        OpenMetrics has exemplars, the text format has none.
        """
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type

    def counter(self, name: str, help_text: str, *labels: str) -> Counter:
        """The counter `spanwise_<name>`: made at the first call, the same one at every later call."""
        return self._family(Counter, name, help_text, labels)

    def gauge(self, name: str, help_text: str, *labels: str) -> Gauge:
        """The gauge `spanwise_<name>`: made at the first call, the same one at every later call."""
        return self._family(Gauge, name, help_text, labels)

    def histogram(
        self, name: str, help_text: str, *labels: str, buckets: Sequence[float]
    ) -> Histogram:
        """The histogram `spanwise_<name>`: made at the first call, the same one at every later call."""
        return self._family(Histogram, name, help_text, labels, buckets=buckets)

    def _family(
        self,
        kind: Callable[..., _F],
        name: str,
        help_text: str,
        labels: Sequence[str],
        **settings: Sequence[float],
    ) -> _F:
        if name not in self._families:
            self._families[name] = kind(
                f"spanwise_{name}", help_text, labels, registry=self.registry, **settings
            )
        return cast(_F, self._families[name])
