"""The panels and queries of the dashboard, and what Grafana puts in the place of its variables."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scripts.dashboard import dashboard
from tests.support.prometheus import Labels

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
