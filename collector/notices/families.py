"""The metric family about notices."""

from collector.base.telemetry import Telemetry


class NoticeFamilies:
    def __init__(self, telemetry: Telemetry) -> None:
        self.notices = telemetry.counter(
            "notices", "Notices about alerts, by target and result.", "target result"
        )
        """By result: `sent`; `retried`: not taken now; `superseded`: over before the target could be reached;
        `dropped`: refused, or not taken for an hour."""
