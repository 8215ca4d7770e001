"""The metric families of the room that ranks sessions."""

from collector.base.telemetry import Telemetry


class RankingFamilies:
    """What the ranking room exports about itself."""

    def __init__(self, telemetry: Telemetry) -> None:
        self.histories = telemetry.gauge(
            "ranking_histories",
            "Agents and tasks whose earlier sessions are remembered, by kind (agents, tasks).",
            "kind",
        )
        self.dropped = telemetry.counter(
            "ranking_dropped", "Histories that were evicted, and records that expired.", "reason"
        )
        """By reason: `max_agents`, `max_tasks`, `expired`."""
