"""How the process is doing, from its own metrics: lag, sinks, storage, the judge. Only what is shown is collected."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.samples import Sample

from collector.base.clock import Clock

_SHOWN = (
    *("spans_received_total", "traces_closed_total", "traces_active", "sessions_active"),
    *("log_lag_records", "log_lag_seconds", "log_time_ahead_seconds"),
    *("signals_total", "outbox_records", "outbox_oldest_timestamp_seconds"),
    "forward_traces_total",
    *("log_bytes", "log_limit_bytes", "log_dropped_records_total", "log_gap_records_total"),
    *("index_bytes", "index_limit_bytes", "index_evicted_total"),
    *("judge_requests_total", "judge_tokens_total", "judge_cost_usd_total"),
    *("judge_budget_remaining_usd", "judge_budget_limit_usd"),
    *("room_failures_total", "worker_restarts_total"),
    *("requests_refused_total", "requests_misdirected_total", "connections_closed_total"),
)
PREFIX = "spanwise_"


@dataclass(frozen=True, slots=True)
class Numbers:
    """Samples by name, without the prefix, and labels."""

    samples: Mapping[str, tuple[tuple[Mapping[str, str], float], ...]]

    def total(self, name: str, **labels: str) -> float:
        every = self.samples.get(name, ())
        return sum(value for own, value in every if labels.items() <= own.items())

    def value(self, name: str, **labels: str) -> float | None:
        """The value of the first series that has these labels; None where there is none."""
        every = self.samples.get(name, ())
        return next((value for own, value in every if labels.items() <= own.items()), None)

    def by(self, name: str, label: str) -> dict[str, float]:
        """The sums by the values of one label, in their order."""
        sums: dict[str, float] = {}
        for own, value in self.samples.get(name, ()):
            sums[own.get(label, "")] = sums.get(own.get(label, ""), 0.0) + value
        return dict(sorted(sums.items()))


class Vitals:
    """Reads the registry of the process; call it on the event loop, to which the gauges belong.

    `clock`: Unix seconds.
    """

    def __init__(self, registry: CollectorRegistry, *, clock: Clock) -> None:
        self._registry = registry.restricted_registry([PREFIX + each for each in _SHOWN])
        self._clock = clock

    def now(self) -> dict[str, Any]:
        every = (sample for family in self._registry.collect() for sample in family.samples)
        return vitals(numbers(every), now=self._clock())


def numbers(samples: Iterable[Sample]) -> Numbers:
    found: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for each in samples:
        found.setdefault(each.name.removeprefix(PREFIX), []).append((each.labels, each.value))
    return Numbers({name: tuple(values) for name, values in found.items()})


def vitals(of: Numbers, *, now: float) -> dict[str, Any]:
    """What the page shows. Sizes are bytes, ages seconds, costs USD; None: not known."""
    return {
        "spans": of.by("spans_received_total", "result"),
        "requests_refused": of.by("requests_refused_total", "reason"),
        "misdirected": {
            **of.by("requests_misdirected_total", "reason"),
            "http1": of.total("connections_closed_total", listener="grpc", reason="http1"),
        },
        "traces_closed": of.total("traces_closed_total"),
        "traces_open": of.total("traces_active"),
        "sessions_open": of.total("sessions_active"),
        "lag": [
            {**labels, "records": records, "seconds": of.value("log_lag_seconds", **labels)}
            for labels, records in of.samples.get("log_lag_records", ())
        ],
        "log_time_ahead": of.value("log_time_ahead_seconds"),
        "sinks": _sinks(of, now),
        "forward_lost": {
            labels["reason"]: count
            for labels, count in of.samples.get("forward_traces_total", ())
            if labels["result"] == "lost" and count
        },
        "storage": _storage(of),
        "judge": {
            "requests": of.by("judge_requests_total", "result"),
            "tokens": of.by("judge_tokens_total", "type"),
            "usd": of.by("judge_cost_usd_total", "model"),
            "remaining": of.value("judge_budget_remaining_usd"),
            "limit": of.value("judge_budget_limit_usd"),
        },
        "evicted": of.by("index_evicted_total", "kind"),
        "dropped": of.total("log_dropped_records_total"),
        "gaps": of.total("log_gap_records_total"),
        "room_failures": of.by("room_failures_total", "room"),
        "worker_restarts": of.by("worker_restarts_total", "reason"),
    }


def _sinks(of: Numbers, now: float) -> list[dict[str, Any]]:
    handed = {name for name, count in of.by("signals_total", "sink").items() if count}
    names = sorted(handed | of.by("outbox_records", "sink").keys())
    return [
        {
            "name": name,
            **{
                result: of.total("signals_total", sink=name, result=result)
                for result in ("acked", "retried", "lost")
            },
            "waiting": of.value("outbox_records", sink=name),
            "oldest": max(0.0, now - since)
            if (since := of.value("outbox_oldest_timestamp_seconds", sink=name))
            else None,
        }
        for name in names
    ]


def _storage(of: Numbers) -> list[dict[str, Any]]:
    index = of.value("index_bytes")
    log = [
        {"name": f"log, {topic}", "bytes": size, "limit": of.value("log_limit_bytes", topic=topic)}
        for topic, size in of.by("log_bytes", "topic").items()
    ]
    if index is not None:
        limit = of.value("index_limit_bytes")
        log.insert(0, {"name": "index of the page", "bytes": index, "limit": limit})
    return log
