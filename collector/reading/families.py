"""Metric families of the worker processes."""

from collector.base.telemetry import Telemetry


class PoolFamilies:
    def __init__(self, telemetry: Telemetry) -> None:
        self.worker_restarts = telemetry.counter(
            "worker_restarts", "Evaluator workers replaced, by reason.", "reason"
        )
