"""The metric families of judging."""

from collections.abc import Callable

from collector.base.telemetry import Telemetry

Amount = Callable[[], float | None]  # USD; None: without limit


class JudgingFamilies:
    def __init__(self, telemetry: Telemetry) -> None:
        counter, gauge = telemetry.counter, telemetry.gauge
        self.requests = counter(
            "judge_requests", "Requests to judges, by how they ended.", "model result"
        )
        self.request_duration = telemetry.histogram(
            "judge_request_duration_seconds",
            "Duration of requests to judges.",
            "model",
            buckets=(0.25, 0.5, 1, 2, 4, 8, 16, 32, 64),
        )
        self.tokens = counter("judge_tokens", "Tokens that judges counted.", "model type")
        self.cost = counter("judge_cost_usd", "What judges cost, in USD.", "model")
        self.budget_remaining = gauge(
            "judge_budget_remaining_usd",
            "What may still be spent in the budget's period.",
            "budget",
        )
        self.budget_limit = gauge(
            "judge_budget_limit_usd", "What may be spent in the budget's period.", "budget"
        )
        self.restarts = counter(
            "judge_restarts",
            "Judge processes replaced, by reason: died, hung, unstartable.",
            "reason",
        )

    def show_budget(self, budget: str, remaining: Amount, limit: Amount) -> None:
        """Ask for the budget's gauges at every scrape: they are there from the start, and change with the day."""
        if limit() is not None:
            self.budget_remaining.labels(budget).set_function(lambda: remaining() or 0.0)
            self.budget_limit.labels(budget).set_function(lambda: limit() or 0.0)
