"""The registry of a process's metric families. Each room declares its own in a file `families.py`.

collector/wiring/families.py lists them all; families about agents belong to role `publish` alone.

The registry is an object, never prometheus-client's global one. Label values come from closed sets; `service` alone is
open and is bounded: the 64 with the most traces lately have their name, the others are `_other` and are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self, TypeVar, cast

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics import MetricWrapperBase

from collector.slots import FEW, Slots

disable_created_metrics()  # `_created` series would double what is scraped and say nothing we alert on
MAX_SERVICES = 64
OTHER = "_other"
LONGEST_LABEL = 128
"""Characters of a label value; the rest is cut, whoever made the name."""
_F = TypeVar("_F", Counter, Gauge, Histogram)


def short(value: object) -> str:
    """The value as a label: at most 128 characters."""
    return str(value)[:LONGEST_LABEL]


class _ShortLabels(MetricWrapperBase):
    def labels(self, *labelvalues: object, **labelkwargs: object) -> Self:
        named = {name: short(value) for name, value in labelkwargs.items()}
        return super().labels(*map(short, labelvalues), **named)


class _Counter(_ShortLabels, Counter):
    pass


class _Gauge(_ShortLabels, Gauge):
    pass


class _Histogram(_ShortLabels, Histogram):
    pass


class Telemetry:
    """The process families, made once per process and handed to every room."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = CollectorRegistry(auto_describe=True) if registry is None else registry
        # In a process with all roles each trace is counted when it closes and when it is scored.
        self._services: Slots[str] = Slots(MAX_SERVICES, few=2 * FEW)
        self._families: dict[str, Counter | Gauge | Histogram] = {}
        self._by_service: list[Counter | Gauge | Histogram] = []

        self.label_overflow = self.counter(
            "label_overflow", "Label values folded into _other or dropped.", "label"
        )
        self.build = Info("spanwise_build", "The running version.", registry=self.registry)

    def count_service(self, name: str, now: float) -> None:
        """Count a trace of the service at log time `now`: the services with the most of them have a name.

        A service that loses its slot to another loses its series: they end, and begin at 0 if it comes back.
        """
        loser = None if name == OTHER else self._services.count(short(name), now)
        if loser is not None:
            for family in self._by_service:
                family.remove_by_labels({"service": loser})

    def service(self, name: str) -> str:
        """The label value for a service: its name, or `_other` while it has no slot."""
        name = short(name)
        if name != OTHER and self._services.hold(name):
            return name
        self.label_overflow.labels("service").inc()
        return OTHER

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """All families in the format that the `Accept` header asks for, and its content type.

        OpenMetrics has exemplars, the text format has none.
        """
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type

    def counter(self, name: str, help_text: str, *labels: str) -> Counter:
        """The counter `spanwise_<name>`: made at the first call, the same one at every later call."""
        return self._family(_Counter, name, help_text, labels)

    def gauge(self, name: str, help_text: str, *labels: str) -> Gauge:
        """The gauge `spanwise_<name>`: made at the first call, the same one at every later call."""
        return self._family(_Gauge, name, help_text, labels)

    def histogram(
        self, name: str, help_text: str, *labels: str, buckets: Sequence[float]
    ) -> Histogram:
        """The histogram `spanwise_<name>`: made at the first call, the same one at every later call."""
        return self._family(_Histogram, name, help_text, labels, buckets=buckets)

    def _family(
        self,
        kind: Callable[..., _F],
        name: str,
        help_text: str,
        labels: Sequence[str],
        **settings: Sequence[float],
    ) -> _F:
        if name not in self._families:
            made = kind(f"spanwise_{name}", help_text, labels, registry=self.registry, **settings)
            self._families[name] = made
            if "service" in labels and "agent" not in labels:
                self._by_service.append(made)
        return cast(_F, self._families[name])
