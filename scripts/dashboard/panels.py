"""Panels of Grafana's classic dashboard schema, as data. Pure.

A panel has no place and no id yet: `layout.py` gives both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scripts.dashboard.promql import AGENT, chosen

Panel = dict[str, Any]

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
NO_VALUE = "unknown"
"""What a panel without data says: a missing series is neither good nor bad."""
MIN_STEP = "30s"
"""Scores come by the minute: a finer step shows gaps, not more."""
COUNTS = "short"
RATES = "cpm"
BOUNDED: Mapping[str, Mapping[str, float]] = {"percentunit": {"min": 0, "max": 1}}
"""The limits of an axis by its unit; of every other unit 0 is the least."""
_RED_FROM = {"mode": "absolute", "steps": [{"color": "green", "value": None}]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One PromQL expression and how its series are called."""

    expr: str
    legend: str = ""
    variables: tuple[str, ...] = AGENT
    """What narrows it; `()` where it does so itself."""
    has_exemplars: bool = False
    unit: str | None = None
    """Of its column in a table or of its line; None: the panel's."""

    def target(self, ref: str, *, as_table: bool) -> dict[str, Any]:
        """As Grafana has it: over time, or (a table's) at the end of the time that is shown."""
        return {
            "datasource": SOURCE,
            "editorMode": "code",
            "exemplar": self.has_exemplars,
            "expr": chosen(self.expr, self.variables),
            "format": "table" if as_table else "time_series",
            "instant": as_table,
            "legendFormat": self.legend or "__auto",
            "range": not as_table,
            "refId": ref,
        }


def over_time(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    dashed: str = "",
    links: Sequence[Mapping[str, Any]] = (),
    is_stacked: bool = False,
) -> Panel:
    """Lines; those of the queries named in `dashed` (A, B, ...) are limits and bounds; or stacked bars."""
    style = {"drawStyle": "bars", "fillOpacity": 70, "stacking": {"group": "A", "mode": "normal"}}
    return {
        **_panel("timeseries", title, description, queries),
        "fieldConfig": {
            "defaults": {
                **_defaults(unit),
                "custom": {
                    "drawStyle": "line",
                    "fillOpacity": 0,
                    "lineWidth": 2,
                    "showPoints": "auto",
                    "spanNulls": 300_000,
                    "stacking": {"group": "A", "mode": "none"},
                    **(style if is_stacked else {}),
                },
            },
            "overrides": [_dashed(ref) for ref in dashed],
        },
        "interval": MIN_STEP,
        "links": list(links),
        "options": {
            "legend": {
                "calcs": ["lastNotNull"],
                "displayMode": "list",
                "placement": "bottom",
                "showLegend": True,
            },
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
    }


def states(
    title: str, description: str, texts: Mapping[int, tuple[str, str]], query: Query
) -> Panel:
    """A band for each series; `texts`: what a value is called, and its colour."""
    values = {
        str(value): {"color": color, "index": value, "text": text}
        for value, (text, color) in texts.items()
    }
    return {
        **_panel("state-timeline", title, description, [query]),
        "fieldConfig": {
            "defaults": {
                "color": {"mode": "thresholds"},
                "custom": {"fillOpacity": 70, "lineWidth": 0},
                "mappings": [{"options": values, "type": "value"}],
                "noValue": NO_VALUE,
                "thresholds": _RED_FROM,
                "unit": "none",
            },
            "overrides": [],
        },
        "interval": MIN_STEP,
        "options": {
            "alignValue": "left",
            "legend": {
                "calcs": [],
                "displayMode": "list",
                "placement": "bottom",
                "showLegend": False,
            },
            "mergeValues": True,
            "rowHeight": 0.8,
            "showValue": "never",
            "tooltip": {"mode": "single", "sort": "none"},
        },
    }


def number(
    title: str,
    description: str,
    unit: str,
    query: Query,
    *,
    red_from: float | None = None,
    without: str = NO_VALUE,
) -> Panel:
    """The newest value, red from a limit on; `without`: what stands there when there is no value."""
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if red_from is not None:
        steps.append({"color": "red", "value": red_from})
    return {
        **_panel("stat", title, description, [query]),
        "fieldConfig": {
            "defaults": {
                **_defaults(unit),
                "color": {"mode": "thresholds"},
                "noValue": without,
                "thresholds": {"mode": "absolute", "steps": steps},
            },
            "overrides": [],
        },
        "options": {
            "colorMode": "value",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "textMode": "value",
        },
    }


def table(
    title: str,
    description: str,
    columns: Mapping[str, Query],
    *,
    hidden: Sequence[str] = (),
    cell_links: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> Panel:
    """A line for each label set and a column for each query, by its title; label columns keep the label's name."""
    refs = _refs(len(columns))
    # Grafana calls the column of a table's only query `Value`, of several `Value #A` and so on.
    names = {f"Value #{ref}": name for ref, name in zip(refs, columns, strict=True)}
    if len(columns) == 1:
        names = {"Value": next(iter(columns))}
    return {
        **_panel("table", title, description, list(columns.values()), as_table=True),
        "fieldConfig": {
            "defaults": {
                "custom": {"align": "auto", "cellOptions": {"type": "auto"}},
                "noValue": NO_VALUE,
                "unit": COUNTS,
            },
            "overrides": [
                *(
                    _override("byName", name, unit=query.unit)
                    for name, query in columns.items()
                    if query.unit is not None
                ),
                *(
                    _override("byName", name, links=[dict(each) for each in links])
                    for name, links in (cell_links or {}).items()
                ),
            ],
        },
        "options": {"cellHeight": "sm", "showHeader": True},
        "transformations": [
            {"id": "merge", "options": {}},
            {
                "id": "organize",
                "options": {
                    "excludeByName": dict.fromkeys(("Time", "__name__", *hidden), True),
                    "indexByName": {},
                    "renameByName": names,
                },
            },
        ],
    }


def link(title: str, url: str) -> dict[str, Any]:
    """A link out of the dashboard, in a tab of its own."""
    return {"targetBlank": True, "title": title, "url": url}


def _panel(
    kind: str, title: str, description: str, queries: Sequence[Query], *, as_table: bool = False
) -> Panel:
    refs = _refs(len(queries))
    return {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": SOURCE,
        "targets": [
            query.target(ref, as_table=as_table) for ref, query in zip(refs, queries, strict=True)
        ],
    }


def _refs(count: int) -> str:
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:count]


def _defaults(unit: str) -> dict[str, Any]:
    return {
        "color": {"mode": "palette-classic"},
        "noValue": NO_VALUE,
        "unit": unit,
        **BOUNDED.get(unit, {"min": 0}),
    }


def _dashed(ref: str) -> dict[str, Any]:
    return _override(
        "byFrameRefID",
        ref,
        **{"custom.lineStyle": {"dash": [8, 8], "fill": "dash"}, "custom.lineWidth": 1},
    )


def _override(matcher: str, name: str, **properties: object) -> dict[str, Any]:
    return {
        "matcher": {"id": matcher, "options": name},
        "properties": [{"id": key, "value": value} for key, value in properties.items()],
    }
