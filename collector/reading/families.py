"""Metric families of the worker processes."""

from collector.base.telemetry import Telemetry


class PoolFamilies:
    """Evaluator workers that were replaced."""

    def __init__(self, telemetry: Telemetry) -> None:
        self.worker_restarts = telemetry.counter(
            "worker_restarts", "Evaluator workers replaced, by reason.", "reason"
        )
        self.evaluator_off = telemetry.gauge(
            "evaluator_switched_off",
            "1 while an evaluator of a third party is switched off, because it ended or held up its process; 0 else.",
            "evaluator",
        )
