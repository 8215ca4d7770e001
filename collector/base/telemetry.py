"""The registry of a process's metric families. Each room declares its own in a file `families.py`.

collector/service/families.py lists them all; families about agents belong to role `publish` alone.

The registry is an object, never prometheus-client's global one. Label values come from closed sets; `service` alone is
open and is bounded: the 64 with the most traces lately have their name, the others are `_other` and are counted.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from math import inf
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
from prometheus_client.samples import Exemplar, Sample

from collector.base.clock import wall
from collector.base.slots import FEW, Slots

disable_created_metrics()  # `_created` series would double what is scraped and say nothing we alert on
MAX_SERVICES = 64
OTHER = "_other"
LONGEST_LABEL = 128
"""Characters of a label value; the rest is cut, whoever made the name."""
_F = TypeVar("_F", bound=MetricWrapperBase)


def short(value: object) -> str:
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


class Tally(_Counter):
    """A counter that one thread adds to: its children are plain numbers, which cost a tenth."""

    def _metric_init(self) -> None:
        self.total = 0.0  # of a child: the caller adds to it
        self.exemplar: Exemplar | None = None

    def inc(self, amount: float = 1, exemplar: dict[str, str] | None = None) -> None:
        """Add to the total; `exemplar` is of bounded length."""
        self.total += amount
        if exemplar:
            self.exemplar = Exemplar(exemplar, amount, wall())

    def _child_samples(self) -> Iterable[Sample]:
        return (Sample("_total", {}, self.total, None, self.exemplar),)


class Buckets(_Histogram):
    """A histogram that one thread observes: its children are plain numbers, as those of `Tally`."""

    def _metric_init(self) -> None:
        self._counts = [0.0] * len(self._upper_bounds)
        self._exemplars: list[Exemplar | None] = [None] * len(self._upper_bounds)
        self._total = 0.0

    def observe(self, amount: float, exemplar: dict[str, str] | None = None) -> None:
        """Count an amount that is a number; `exemplar` is of bounded length."""
        self._total += amount
        bucket = bisect_left(self._upper_bounds, amount)
        self._counts[bucket] += 1
        if exemplar:
            self._exemplars[bucket] = Exemplar(exemplar, amount, wall())

    def _child_samples(self) -> Iterable[Sample]:
        count = 0.0
        for bound, each, exemplar in zip(
            self._upper_bounds, self._counts, self._exemplars, strict=True
        ):
            count += each
            yield Sample(
                "_bucket", {"le": "+Inf" if bound == inf else repr(bound)}, count, None, exemplar
            )
        yield Sample("_count", {}, count, None, None)
        yield Sample("_sum", {}, self._total, None, None)


class Telemetry:
    """The process families, made once per process and handed to every room."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = CollectorRegistry(auto_describe=True) if registry is None else registry
        # In a process with all roles each trace is counted when it closes and when it is scored.
        self._services: Slots[str] = Slots(MAX_SERVICES, few=2 * FEW)
        self._families: dict[str, MetricWrapperBase] = {}
        self._by_service: list[MetricWrapperBase] = []

        self.label_overflow = self.counter(
            "label_overflow", "Label values folded into _other or dropped.", "label"
        )
        self.signals = self.counter(
            "signals", "Signals handed to a sink, by what became of them.", "sink result"
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

    def counter(self, name: str, help_text: str, labels: str = "") -> Counter:
        """The counter `spanwise_<name>`: made at the first call, the same one at every later call."""
        return self._family(_Counter, name, help_text, labels)

    def gauge(self, name: str, help_text: str, labels: str = "") -> Gauge:
        return self._family(_Gauge, name, help_text, labels)

    def histogram(
        self, name: str, help_text: str, labels: str = "", *, buckets: Sequence[float]
    ) -> Histogram:
        return self._family(_Histogram, name, help_text, labels, buckets=buckets)

    def tally(self, name: str, help_text: str, labels: str = "") -> Tally:
        """As `counter`, for a family that one thread alone adds to."""
        return self._family(Tally, name, help_text, labels)

    def buckets(
        self, name: str, help_text: str, labels: str = "", *, buckets: Sequence[float]
    ) -> Buckets:
        """As `histogram`, for a family that one thread alone observes; its bounds are from 0 to 100,000."""
        return self._family(Buckets, name, help_text, labels, buckets=buckets)

    def _family(
        self,
        kind: Callable[..., _F],
        name: str,
        help_text: str,
        labels: str,
        **settings: Sequence[float],
    ) -> _F:
        """`labels`: their names, parted by spaces."""
        if name not in self._families:
            names = labels.split()
            made = kind(f"spanwise_{name}", help_text, names, registry=self.registry, **settings)
            self._families[name] = made
            if "service" in names and "agent" not in names:
                self._by_service.append(made)
        return cast(_F, self._families[name])
