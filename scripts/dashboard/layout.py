"""Where panels stand: lines of panels of one height, from left to right, a row's below its title. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from scripts.dashboard.panels import Panel

WIDTH = 24
"""Of a dashboard, in Grafana's grid."""
TALL = 8
FLAT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A titled part of the dashboard."""

    title: str
    lines: Sequence[Sequence[Panel]]
    """The panels of a line share its width."""
    repeat: str | None = None
    """The variable for each of whose values the row stands there once more."""
    is_open: bool = True


def placed(rows: Sequence[Row]) -> list[Panel]:
    """The panels with their places and ids; those of a row that is not open stand inside of it, as Grafana asks."""
    found: list[Panel] = []
    at, number = 0, 0
    for row in rows:
        number += 1
        title: Panel = {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": not row.is_open,
            "gridPos": {"h": 1, "w": WIDTH, "x": 0, "y": at},
            "panels": [],
        }
        if row.repeat is not None:
            title["repeat"] = row.repeat
        panels = list(_inside(row, at + 1, number))
        number += len(panels)
        found.append(title)
        if row.is_open:
            found += panels
            at = max(each["gridPos"]["y"] + each["gridPos"]["h"] for each in panels)
        else:
            title["panels"] = panels
            at += 1
    return found


def _inside(row: Row, at: int, number: int) -> Iterator[Panel]:
    for line in row.lines:
        height = FLAT if all(each["type"] == "stat" for each in line) else TALL
        width = WIDTH // len(line)
        for index, panel in enumerate(line):
            number += 1
            place: dict[str, Any] = {"h": height, "w": width, "x": index * width, "y": at}
            yield {"id": number, **panel, "gridPos": place}
        at += height
