"""The dashboard: its panels and queries, what Grafana puts in the place of variables, and a Prometheus asked so."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from scripts.dashboard import dashboard
from tests.support.prometheus import Labels, Prometheus

ALL = {"job": ".+", "service": ".+", "agent": ".+"}
"""What is chosen where nothing is chosen."""
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One query of one panel."""

    panel: str
    """The panel's title, and in a table its column's."""
    expr: str
    unit: str
    is_table: bool

    def asked(self, window: str, **chosen: str) -> str:
        """The expression as Prometheus gets it: rates and sums over `window`, and everything that is not `chosen`."""
        return replaced(self.expr, __rate_interval=window, __range=window, **chosen)


def replaced(text: str, **chosen: str) -> str:
    """The text with a value for each of its variables."""
    values = {**ALL, **chosen}
    return _VARIABLE.sub(lambda found: values[found[1]], text)


def panels(board: Mapping[str, Any] | None = None) -> Iterator[dict[str, Any]]:
    """Every panel that is not a row, also those in rows that are folded up."""
    for each in (board or dashboard())["panels"]:
        if each["type"] != "row":
            yield each
        yield from each.get("panels", ())


def targets(board: Mapping[str, Any] | None = None) -> list[Target]:
    """Every query of every panel and of every mark on them, with the unit in which its values are shown."""
    marks = [
        Target(
            panel=f"marks: {each['name']}",
            expr=each["expr"],
            unit="dateTimeAsIso" if each["useValueForTime"] else "short",
            is_table=False,
        )
        for each in (board or dashboard())["annotations"]["list"]
    ]
    return marks + [
        Target(
            panel=f"{panel['title']}, {column}" if column else panel["title"],
            expr=target["expr"],
            unit=_unit(panel, column),
            is_table=panel["type"] == "table",
        )
        for panel in panels(board)
        for target in panel["targets"]
        for column in [_column(panel, target["refId"])]
    ]


def _column(panel: Mapping[str, Any], ref: str) -> str:
    if panel["type"] != "table":
        return ""
    names = panel["transformations"][-1]["options"]["renameByName"]
    return names.get(f"Value #{ref}", names.get("Value", ""))


def _unit(panel: Mapping[str, Any], column: str) -> str:
    for override in panel["fieldConfig"]["overrides"]:
        if column and override["matcher"] == {"id": "byName", "options": column}:
            return next(each["value"] for each in override["properties"] if each["id"] == "unit")
    return panel["fieldConfig"]["defaults"]["unit"]


def misfits(target: Target, found: list[tuple[Labels, list[tuple[float, float]]]]) -> list[str]:
    """Values that the unit cannot mean. A moment is the time in milliseconds, at most a day from when it was asked."""
    return [
        f"{target.panel}: {value:g} at {dict(labels)} is no {target.unit}"
        for labels, points in found
        for at, value in points
        if not _fits(target.unit, at, value)
    ]


def _fits(unit: str, at: float, value: float) -> bool:
    if unit == "percentunit":
        return 0 <= value <= 1
    if unit == "dateTimeAsIso":
        return abs(value / 1000 - at) < 86_400
    if unit == "s":
        return (
            -1 <= value < 86_400
        )  # the age of what was appended since the scrape may be a little below 0
    return value >= 0


SHOWN = 600.0
"""Seconds up to now that are looked at: all of a test's run. A query of a table is asked at each of their moments."""
WINDOW = "15s"
"""For what counts within a window; the scrapes are a second apart."""
Found = list[tuple[Labels, list[tuple[float, float]]]]
_VALUES = re.compile(r"label_values\((.+), (\w+)\)")


@dataclass(slots=True)
class Board:
    """What its queries have answered; one that has answered is not asked again."""

    prometheus: Prometheus
    answers: dict[Target, Found] = field(default_factory=dict[Target, Found])

    def unanswered(self) -> list[str]:
        """Ask what has no data yet; the panels of what still has none."""
        for target in targets():
            if target not in self.answers and (found := self._ask(target.asked(WINDOW))):
                self.answers[target] = found
        return [f"{each.panel}: {each.expr}" for each in targets() if each not in self.answers]

    def misfits(self) -> list[str]:
        """Values of all answers that their units cannot mean."""
        return [text for target, found in self.answers.items() for text in misfits(target, found)]

    def shown(self, panel: str, **chosen: str) -> Found:
        """What one panel, or one column of a table, shows for a choice."""
        (target,) = (each for each in targets() if each.panel == panel)
        return self._ask(target.asked(WINDOW, **chosen))

    def offered(self, variable: str) -> set[str]:
        """The values of one of the variables at the top."""
        made = {each["name"]: each for each in dashboard()["templating"]["list"]}
        found = _VALUES.fullmatch(made[variable]["query"]["query"])
        assert found is not None
        selector, label = found.groups()
        return self.prometheus.label_values(label, replaced(selector))

    def _ask(self, expression: str) -> Found:
        return self.prometheus.over_time(expression, SHOWN)
