"""Families as OTLP metrics: sample by sample what `/metrics` holds, as totals or as what was added."""

from collections.abc import Iterable, Iterator
from typing import Any, cast

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from collector.base.telemetry import Telemetry
from collector.otlp.metric_stream import LARGEST, MetricStream
from collector.service.families import declare_families

START = 5
CUMULATIVE, DELTA = 2, 1
Points = dict[tuple[str, tuple[tuple[str, str], ...]], Any]


class Stand:
    def __init__(self, *, is_delta: bool = False, families: Iterable[str] | None = None) -> None:
        self.telemetry = Telemetry()
        self.stream = MetricStream(
            {"service.name": "spanwise"}, is_delta=is_delta, start=START, families=families
        )
        self.asked = self.telemetry.counter("asked", "How often.", "who")
        self.size = self.telemetry.histogram("size_bytes", "How large.", buckets=(1.0, 10.0))

    def push(self, now: int, *, is_taken: bool = True) -> Points:
        """The points of all requests."""
        found: Points = {}
        for export in self.stream.requests(self.telemetry.registry.collect(), now):
            found |= points(export.body)
            if is_taken:
                self.stream.taken(export)
        return found


def metrics(body: bytes) -> Iterator[Metric]:
    request = ExportMetricsServiceRequest.FromString(body)
    for resource in request.resource_metrics:
        for scope in resource.scope_metrics:
            yield from scope.metrics


def points(body: bytes) -> Points:
    return {
        (metric.name, tuple((each.key, each.value.string_value) for each in point.attributes)): (
            point
        )
        for metric in metrics(body)
        for point in getattr(metric, cast(str, metric.WhichOneof("data"))).data_points
    }


def samples(points: Points) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """As a Prometheus exporter shows them."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for (name, labels), point in points.items():
        if not hasattr(point, "bucket_counts"):
            found[name, tuple(sorted(labels))] = point.as_double
            continue
        total = 0
        for bound, count in zip(
            (*point.explicit_bounds, float("inf")), point.bucket_counts, strict=True
        ):
            total += count
            le = "+Inf" if bound == float("inf") else repr(bound)
            found[f"{name}_bucket", tuple(sorted((*labels, ("le", le))))] = total
        found[f"{name}_count", tuple(sorted(labels))] = point.count
        found[f"{name}_sum", tuple(sorted(labels))] = point.sum
    return found


def scraped(telemetry: Telemetry) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in telemetry.registry.collect()
        for sample in family.samples
    }


def test_every_sample_of_every_family_is_there_with_its_name() -> None:
    stand = Stand()
    declare_families(stand.telemetry)
    stand.telemetry.build.info({"version": "1"})
    stand.asked.labels("ada").inc(3)
    for size in (0.5, 5.0, 50.0, 60.0):
        stand.size.observe(size)

    assert samples(stand.push(10)) == scraped(stand.telemetry)
    assert len(scraped(stand.telemetry)) > 20


def test_totals_count_from_the_start_of_the_process() -> None:
    stand = Stand()
    stand.asked.labels("ada").inc(3)
    stand.push(10)
    stand.asked.labels("ada").inc(2)
    stand.asked.labels("bob").inc()

    found = stand.push(20)

    ada, bob = (found["spanwise_asked_total", (("who", who),)] for who in ("ada", "bob"))
    assert (ada.as_double, ada.start_time_unix_nano, ada.time_unix_nano) == (5.0, START, 20)
    assert (bob.as_double, bob.start_time_unix_nano) == (1.0, 10)


def test_what_was_added_while_a_request_failed_is_in_the_next() -> None:
    stand = Stand(is_delta=True)
    stand.asked.labels("ada").inc(3)
    stand.size.observe(5.0)
    stand.push(10)
    stand.asked.labels("ada").inc(2)
    stand.size.observe(0.5)
    stand.push(20, is_taken=False)
    stand.asked.labels("ada").inc()
    stand.size.observe(50.0)

    found = stand.push(30)

    ada = found["spanwise_asked_total", (("who", "ada"),)]
    assert (ada.as_double, ada.start_time_unix_nano) == (3.0, 10)
    size = found["spanwise_size_bytes", ()]
    assert (list(size.bucket_counts), size.count, size.sum) == ([1, 0, 1], 2, 50.5)
    assert stand.push(40)["spanwise_asked_total", (("who", "ada"),)].as_double == 0.0


def test_a_series_that_ended_says_so_once_and_one_that_began_again_counts_again() -> None:
    stand = Stand()
    stand.asked.labels("ada").inc(3)
    stand.push(10)
    stand.asked.remove("ada")

    key = ("spanwise_asked_total", (("who", "ada"),))
    assert stand.push(20, is_taken=False)[key].flags == 1
    assert stand.push(30)[key].flags == 1
    assert key not in stand.push(40)

    stand.asked.labels("ada").inc(2)
    again = stand.push(50)[key]
    assert (again.as_double, again.start_time_unix_nano, again.flags) == (2.0, 40, 0)


def test_a_counter_that_began_again_between_two_requests_adds_what_it_holds() -> None:
    stand = Stand(is_delta=True)
    stand.asked.labels("ada").inc(5)
    stand.push(10)
    stand.asked.remove("ada")
    stand.asked.labels("ada").inc(2)

    assert stand.push(20)["spanwise_asked_total", (("who", "ada"),)].as_double == 2.0


def test_sums_are_monotonic_and_say_how_they_count() -> None:
    for is_delta, expected in ((False, CUMULATIVE), (True, DELTA)):
        stand = Stand(is_delta=is_delta)
        stand.asked.labels("ada").inc()
        (export,) = stand.stream.requests(stand.telemetry.registry.collect(), 10)
        found = {each.name: each for each in metrics(export.body)}

        asked = found["spanwise_asked_total"]
        assert asked.sum.is_monotonic
        assert asked.sum.aggregation_temporality == expected
        assert found["spanwise_size_bytes"].histogram.aggregation_temporality == expected
        assert (asked.unit, asked.description) == ("", "How often.")


def test_only_the_families_that_were_named_are_sent() -> None:
    for name in ("spanwise_asked_total", "spanwise_asked"):
        stand = Stand(families=[name])
        stand.asked.labels("ada").inc()

        assert {key[0] for key in stand.push(10)} == {"spanwise_asked_total"}


def test_requests_are_bounded_and_what_was_not_taken_comes_again() -> None:
    stand = Stand(is_delta=True)
    for number in range(12_000):
        stand.asked.labels(f"{number}-{'x' * 90}").inc()
    exports = stand.stream.requests(stand.telemetry.registry.collect(), 10)
    first = next(exports)
    stand.stream.taken(first)
    others = [*exports]

    assert others
    assert all(LARGEST * 0.9 < len(each.body) < 1 << 20 for each in (first, *others[:-1]))
    again = stand.push(20)
    added = [point.as_double for key, point in again.items() if key[0] == "spanwise_asked_total"]
    before = [key for key in points(first.body) if key[0] == "spanwise_asked_total"]
    assert len(added) == 12_000
    assert sum(added) == 12_000 - len(before)
