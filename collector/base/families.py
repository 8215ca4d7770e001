"""The metric families of what every room runs on."""

from collections.abc import Callable, Collection, Iterable
from typing import Literal

from collector.base.telemetry import Telemetry


class RuntimeFamilies:
    def __init__(self, telemetry: Telemetry) -> None:
        counter, gauge = telemetry.counter, telemetry.gauge
        self.poison_records = counter(
            "poison_records",
            "Records that can never be processed, named in the log and passed over.",
            "topic",
        )
        self.unknown_records = counter(
            "unknown_records",
            "Records of a kind that only a newer version knows, passed over by each reader.",
            "topic",
        )
        self.room_failures = counter(
            "room_failures",
            "Failures of rooms that only show, by reason: disk, io, bug. The room is started again.",
            "room reason",
        )
        self.connections_closed = counter(
            "connections_closed",
            "Connections that were closed to keep to a limit, by reason.",
            "listener reason",
        )
        self.log_time_ahead = gauge(
            "log_time_ahead_seconds",
            "How far log time is ahead of the machine's clock; negative: behind.",
        )
        self.event_loop_lag = gauge(
            "event_loop_lag_seconds", "How late the event loop ran its last heartbeat."
        )
        self.evaluator_off = gauge(
            "evaluator_switched_off",
            "1 while an evaluator of a third party is switched off, because it ended or held up its process; 0 else.",
            "evaluator",
        )

    def show_off(self, evaluators: Iterable[str], off: Callable[[], Collection[str]]) -> None:
        for name in evaluators:
            self.evaluator_off.labels(name).set_function(lambda name=name: float(name in off()))

    def closed(self, listener: Literal["admin", "grpc", "http"]) -> Callable[[str], None]:
        return lambda why: self.connections_closed.labels(listener, why).inc()
