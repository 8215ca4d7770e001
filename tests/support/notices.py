"""Notices and alarms as tests make them."""

from collections.abc import Iterable
from typing import Any

from collector.notices.alarms import Alarms
from collector.notices.conditions import GROWTHS, FoundAlert, found_in
from collector.notices.notice import Notice
from collector.notices.series import Series, SeriesSample
from collector.slo.alerts import DROP, FAULT

PLACE = {"service": "shop", "agent": "clerk"}
BEGAN = -60.0  # the faults have stood for a minute when a test begins
BROKEN = FoundAlert(FAULT, {**PLACE, "fault": "tool_failed", "tool": "find_order"}, 1.0, BEGAN)
SLOW = FoundAlert(FAULT, {**PLACE, "fault": "tool_slow", "tool": "find_order"}, 1.0, BEGAN)
DROPPED = FoundAlert(DROP, {**PLACE, "scope": "session"}, 1.0)


class Looked:
    """Alarms of which a test says what holds at which second."""

    def __init__(self, alarms: Alarms) -> None:
        self.alarms = alarms
        self.series = Series(GROWTHS)

    def look(self, now: float, *found: FoundAlert) -> None:
        """These hold now."""
        self.series.take([], now)
        self.alarms.look(found, self.series)

    def sent_to(self, target: str) -> list[tuple[str, str]]:
        """Tell the target everything that is due: (alert, state)."""
        said: list[tuple[str, str]] = []
        for each in self.alarms.due(target):
            said.append((dict(each.labels)["alertname"], each.state))
            self.alarms.was_sent(target, each, each.state)
        return said


def found(
    samples: Iterable[SeriesSample], names: tuple[str, ...], now: float = 0.0
) -> list[FoundAlert]:
    """What holds in samples of one moment."""
    series = Series(GROWTHS)
    series.take(samples, now)
    return [*found_in(series, names)]


def notice(**fields: Any) -> Notice:
    """Of a fault that fires."""
    given: dict[str, Any] = {
        "labels": (
            ("agent", "clerk"),
            ("alertname", "AgentFault"),
            ("fault", "tool_failed"),
            ("service", "shop"),
            ("severity", "page"),
            ("tool", "find_order"),
        ),
        "state": "firing",
        "start": 1_700_000_000.0,
        "end": None,
        "summary": "clerk (shop): find_order fails",
        "description": "find_order fails in 38 of 75 sessions since 19:21, in 1 of 160 before.",
        "runbook": "https://spanwise.example.com/help#agentfault",
        "page": "https://spanwise.example.com/?service=shop&agent=clerk",
    }
    return Notice(**{**given, **fields})
