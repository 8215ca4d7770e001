"""Metric families as OTLP metrics. Pure: what the other side has not taken is sent again with the next.

| in the registry | in OTLP |
|---|---|
| counter | a monotonic sum |
| gauge, info | a gauge |
| histogram | a histogram with explicit bounds |

Names are those of `/metrics` and units are empty, so that a backend adds no suffix a second time.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, NamedTuple

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    DataPointFlags,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
)
from prometheus_client import Metric as Family

LARGEST = 900_000  # bytes of points in a request: with names and resource it stays below 1 MiB
Labels = tuple[tuple[str, str], ...]
Kind = Literal["sum", "gauge", "histogram"]


class MetricSeries(NamedTuple):
    name: str
    labels: Labels
    kind: Kind
    help: str


class State(NamedTuple):
    """Numbers of a series as they stand: one value; of a histogram the counts of its buckets, then the sum."""

    numbers: tuple[float, ...]
    bounds: tuple[float, ...] = ()


class KnownSeries(NamedTuple):
    """What the other side has of a series."""

    state: State
    since: int  # from when its next point counts, unix nanoseconds


@dataclass(slots=True)
class Export:
    """One request, and what the other side knows once it has taken it."""

    body: bytes
    time: int
    known: dict[MetricSeries, KnownSeries | None] = field(
        default_factory=dict[MetricSeries, "KnownSeries | None"]
    )
    """None: the series has ended."""


@dataclass(slots=True)
class MetricStream:
    """What one backend has been sent."""

    resource: Mapping[str, str]  # attributes that say who we are
    _: KW_ONLY
    is_delta: bool  # counters say what was added since the last request that was taken, else since the start
    start: (
        int  # when the counters began, unix nanoseconds; then, of the last request that was taken
    )
    families: Iterable[str] | None = (
        None  # the only ones that are sent, by their names in `/metrics`; None: all
    )
    _known: dict[MetricSeries, KnownSeries] = field(default_factory=dict[MetricSeries, KnownSeries])

    def requests(self, families: Iterable[Family], now: int) -> Iterator[Export]:
        """All series as they stand at `now` (unix nanoseconds); those that have ended, once, without a value."""
        wanted = None if self.families is None else frozenset(self.families)
        current = {
            series: state
            for family in families
            if wanted is None or not wanted.isdisjoint(names_of(family))
            for series, state in _series(family)
        }
        last = self.start
        ended = [each for each in self._known.items() if each[0] not in current]
        builder = _Builder(self.resource, now, is_delta=self.is_delta)
        for series, state in current.items():
            known = self._beginning(series, state, last)
            builder.add(series, state, known)
            since = now if self.is_delta else known.since
            yield from builder.full(series, KnownSeries(state, since))
        for series, known in ended:
            builder.end(series, known)
            yield from builder.full(series, None)
        yield from builder.rest()

    def taken(self, export: Export) -> None:
        self.start = export.time
        for series, known in export.known.items():
            if known is None:
                del self._known[series]
            else:
                self._known[series] = known

    def _beginning(self, series: MetricSeries, state: State, last: int) -> KnownSeries:
        """Where the next point of a series begins: at the last one, or at 0 where it is new or began again."""
        known = self._known.get(series)
        if known is None or (
            series.kind != "gauge"
            and any(new < old for new, old in zip(state.numbers, known.state.numbers, strict=True))
        ):
            return KnownSeries(State((0.0,) * len(state.numbers)), last)
        return known


class _Builder:
    def __init__(self, resource: Mapping[str, str], now: int, *, is_delta: bool) -> None:
        self._resource = resource
        self._now = now
        self._is_delta = is_delta
        self._temporality = (
            AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
            if is_delta
            else AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
        )
        self._begin()

    def _begin(self) -> None:
        self._request = ExportMetricsServiceRequest()
        found = self._request.resource_metrics.add()
        found.resource.attributes.extend(_attribute(*each) for each in self._resource.items())
        self._metrics = found.scope_metrics.add()
        self._metrics.scope.name = "spanwise"
        self._by_name: dict[str, Metric] = {}
        self._known: dict[MetricSeries, KnownSeries | None] = {}
        self._size = 0

    def add(self, series: MetricSeries, state: State, known: KnownSeries) -> None:
        point = self._point(series, known.since)
        numbers = state.numbers
        if self._is_delta and series.kind != "gauge":
            before = known.state.numbers
            numbers = tuple(new - old for new, old in zip(numbers, before, strict=True))
        if isinstance(point, NumberDataPoint):
            point.as_double = numbers[0]
        else:
            counts = [round(each) for each in numbers[:-1]]
            point.bucket_counts.extend(counts)
            point.explicit_bounds.extend(state.bounds)
            point.count = sum(counts)
            point.sum = numbers[-1]
        self._size += point.ByteSize()

    def end(self, series: MetricSeries, known: KnownSeries) -> None:
        point = self._point(series, known.since)
        point.flags = DataPointFlags.DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK
        self._size += point.ByteSize()

    def full(self, series: MetricSeries, known: KnownSeries | None) -> Iterator[Export]:
        self._known[series] = known
        if self._size >= LARGEST:
            yield from self.rest()

    def rest(self) -> Iterator[Export]:
        if self._known:
            export = Export(self._request.SerializeToString(), self._now, self._known)
            self._begin()
            yield export

    def _point(self, series: MetricSeries, since: int) -> NumberDataPoint | HistogramDataPoint:
        metric = self._metric(series)
        if series.kind == "histogram":
            point = metric.histogram.data_points.add()
        elif series.kind == "sum":
            point = metric.sum.data_points.add()
        else:
            point = metric.gauge.data_points.add()
        if series.kind != "gauge":
            point.start_time_unix_nano = since
        point.time_unix_nano = self._now
        point.attributes.extend(_attribute(*each) for each in series.labels)
        return point

    def _metric(self, series: MetricSeries) -> Metric:
        metric = self._by_name.get(series.name)
        if metric is None:
            metric = self._metrics.metrics.add(name=series.name, description=series.help)
            self._by_name[series.name] = metric
            self._size += metric.ByteSize()
            if series.kind == "sum":
                metric.sum.is_monotonic = True
                metric.sum.aggregation_temporality = self._temporality
            elif series.kind == "histogram":
                metric.histogram.aggregation_temporality = self._temporality
        return metric


def names_of(family: Family) -> tuple[str, ...]:
    suffixes = {"counter": ("", "_total"), "info": ("", "_info")}
    return tuple(family.name + each for each in suffixes.get(family.type, ("",)))


def _series(family: Family) -> Iterator[tuple[MetricSeries, State]]:
    help_text = family.documentation
    if family.type == "histogram":
        yield from _histograms(family)
        return
    kind: Kind = "sum" if family.type == "counter" else "gauge"
    for name, labels, value, *_ in family.samples:
        yield MetricSeries(name, tuple(labels.items()), kind, help_text), State((float(value),))


def _histograms(family: Family) -> Iterator[tuple[MetricSeries, State]]:
    """Samples of one label set follow one another: buckets with the counts below each bound, then count and sum."""
    bounds: list[float] = []
    counts: list[float] = []
    for name, labels, value, *_ in family.samples:
        if name.endswith("_bucket"):
            bounds.append(float(labels["le"]))
            counts.append(value)
        elif name.endswith("_sum"):
            own = tuple(new - old for new, old in zip(counts, [0.0, *counts], strict=False))
            series = MetricSeries(
                family.name, tuple(labels.items()), "histogram", family.documentation
            )
            yield series, State((*own, value), tuple(bounds[:-1]))
            bounds, counts = [], []


def _attribute(key: str, value: str) -> KeyValue:
    found = KeyValue(key=key)
    found.value.string_value = value
    return found
