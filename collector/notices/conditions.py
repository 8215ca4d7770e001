"""Which alerts hold now: the expressions of `collector/slo/expressions.py`, over the process's own series. Pure.

A test asks Prometheus and this file the same, over the same series.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from collector.base.telemetry import OTHER
from collector.notices.series import GAP, Growth, Series
from collector.records.standing import FAULTS_THAT_PAGE
from collector.slo.alerts import DROP, FAULT, NOT_DELIVERED, RUNAWAY, STALE, Alert
from collector.slo.rules import rules

CLOSED = Growth("spanwise_traces_closed_total", ("service",))
COUNTED = Growth("spanwise_evaluations_total", ("service",), (("outcome", "pass|fail"),))
UNSCORED = Growth("spanwise_evaluations_total", ("service",), (("outcome", "not_applicable"),))
UNSEEN = Growth("spanwise_evaluations_skipped_total", ("service",), (("reason", "low_coverage"),))
LOST = Growth("spanwise_signals_total", ("sink",), (("result", "lost"),))
GROWTHS = (CLOSED, COUNTED, UNSCORED, UNSEEN, LOST)
EARLY = 15.0
"""Seconds before a fault's minute is over at which it is due, so that it is sent within the minute.

A target is sent one message a second, so that the last of six waits for 6; a machine with ten tasks a core took 9 more.
"""


class FoundAlert(NamedTuple):
    alert: Alert
    labels: Mapping[str, str]  # those of `alert.labels` that are not empty
    value: float
    since: float | None = (
        None  # log time from which it holds, if known: of a fault its first session
    )
    only_goes_on: bool = False  # it does not begin to fire, but goes on where it fires


def _faults(series: Series) -> Iterator[tuple[tuple[str, ...], float]]:
    detected = series.largest("spanwise_fault_detected", FAULT.labels, {}, within=GAP)
    told = series.largest("spanwise_fault_told_as_tool", FAULT.labels, {}, within=GAP)
    for labels, value in detected.items():
        if value > 0 and not told.get(labels, 0.0) > 0:
            yield labels, value


def _paging(series: Series) -> Iterator[tuple[str, ...]]:
    yield from (labels for labels, _ in _faults(series) if labels[2] in FAULTS_THAT_PAGE)


def _began(series: Series) -> Mapping[tuple[str, ...], float]:
    return series.largest("spanwise_fault_since_timestamp_seconds", FAULT.labels, {}, within=GAP)


OPINION = "spanwise_drop_second_opinion"
_AGREED = {1.0: 2.0, 0.0: 0.0}
"""What a second opinion makes of a ticket: a page, or nothing."""


def _drops(series: Series) -> Iterator[tuple[tuple[str, ...], float]]:
    dropped = series.largest("spanwise_drift_detected", DROP.labels, {}, within=GAP)
    strong = series.largest("spanwise_drift_strong", DROP.labels, {}, within=GAP)
    began = _began(series)
    paged = {
        labels[:2] for labels in _paging(series) if fires_at(began.get(labels, 0.0)) <= series.now
    }
    opinions = series.largest(OPINION, DROP.labels[:2], {}, within=GAP)
    for labels in {**strong, **dropped}:
        weak = dropped.get(labels, 0.0) * _AGREED.get(opinions.get(labels[:2], -1.0), 1.0)
        value = 2 * strong.get(labels, 0.0) or weak
        if value > 0 and labels[:2] not in paged:
            yield labels, value


def _runaways(series: Series) -> Iterator[tuple[tuple[str, ...], float]]:
    traces = series.largest("spanwise_runaway_traces", RUNAWAY.labels, {})
    yield from ((labels, value) for labels, value in traces.items() if value > 0)


def _stale(series: Series) -> Iterator[tuple[tuple[str, ...], float]]:
    newest = series.largest("spanwise_last_score_timestamp_seconds", STALE.labels, {})
    closed, counted = series.grown(CLOSED), series.grown(COUNTED)
    unscored, unseen = series.grown(UNSCORED), series.grown(UNSEEN)
    for service, at in newest.items():
        age = series.now - at
        is_no_turn = service in unscored and service not in unseen
        if service == (OTHER,) or age <= 1800 or service in counted or is_no_turn:
            continue
        if service in closed:
            yield service, age
    lags = series.largest("spanwise_log_lag_seconds", ("group",), {}, within=GAP)
    lag = max((lags.get((group,), 0.0) for group in ("assembly", "scoring")), default=0.0)
    if lag > 600:
        yield ("",), lag


def _not_delivered(series: Series) -> Iterator[tuple[tuple[str, ...], float]]:
    family = "spanwise_outbox_oldest_timestamp_seconds"
    waiting = series.largest("spanwise_outbox_records", NOT_DELIVERED.labels, {})
    lost = series.grown(LOST)
    ages = {
        sink: series.now - oldest
        for sink, oldest in series.largest(family, NOT_DELIVERED.labels, {}).items()
        if waiting.get(sink) != 0
    }
    late = {sink: age for sink, age in ages.items() if age > 300}
    yield from {**lost, **late}.items()


LIVE: Mapping[Alert, Callable[[Series], Iterator[tuple[tuple[str, ...], float]]]] = {
    FAULT: _faults,
    DROP: _drops,
    RUNAWAY: _runaways,
    STALE: _stale,
    NOT_DELIVERED: _not_delivered,
}
"""The alerts that a process can tell by itself; burn rates need Prometheus."""
FAMILIES = frozenset(
    family
    for group in rules()
    for rule in group["rules"]
    if rule.get("alert") in {each.name for each in LIVE}
    for family in re.findall(r"\bspanwise_\w+", f"{rule}")
)
"""What their conditions and texts read."""


def fires_at(since: float) -> float:
    """Log time at which a fault of which the first session was seen at `since` is sent."""
    return since + 60 * FAULT.hold - EARLY


def found_in(series: Series, names: tuple[str, ...]) -> Iterator[FoundAlert]:
    began = _began(series)
    faulty = {labels[:2] for labels in _paging(series)}
    for alert, holding in LIVE.items():
        for labels, value in holding(series) if alert.name in names else ():
            given = {name: text for name, text in zip(alert.labels, labels, strict=True) if text}
            since = began.get(labels) if alert is FAULT else None
            yield FoundAlert(alert, given, value, since, alert is DROP and labels[:2] in faulty)
