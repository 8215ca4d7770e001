"""What fault watches and the ranking of sessions export about themselves."""

from collector.base.telemetry import Telemetry


class FaultFamilies:
    """What is not watched, or no longer."""

    def __init__(self, telemetry: Telemetry) -> None:
        self.watches = telemetry.counter(
            "fault_watches_dropped", "Fault watches that were forgotten, by reason.", "reason"
        )
        """By reason: `max_tools`, of a tool that is used less than another; `forgotten`, of an agent without labels."""
        self.sessions = telemetry.counter(
            "fault_sessions_dropped", "Sessions that enter no fault watch, by reason.", "reason"
        )
        """By reason: `max_settling`, too many sessions of the agent settle at once."""
        for reason in ("max_tools", "forgotten"):
            self.watches.labels(reason)
        self.sessions.labels("max_settling")


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
