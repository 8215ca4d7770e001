"""`spanwise evaluators [--format json] [--config FILE]`."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import typer

from collector.commands.options import Files, Overrides, Plugins, TableOrJson, loaded
from collector.commands.output import folded, width_of
from collector.config.plan import plan_from, registry_from
from evaluators.plan import Configured, Plan
from evaluators.registry import listing


def command(
    config: Files = None,
    overrides: Overrides = None,
    *,
    plugins: Plugins = None,
    shape: TableOrJson = "table",
) -> None:
    """List every evaluator: name, scope, version, method, needs, options, doc.

    With a configuration also whether it is on there, and its options as they are set; own judges are listed too.
    """
    settings = loaded(config, overrides, plugins)
    registry = registry_from(settings)
    rows = listing(registry)
    if config or overrides:
        rows = configured(rows, plan_from(settings, registry=registry))
    if shape == "json":
        typer.echo(json.dumps(rows, indent=2))
    else:
        typer.echo(as_table(rows, width_of(sys.stdout) if sys.stdout.isatty() else None))


def configured(rows: list[dict[str, Any]], plan: Plan) -> list[dict[str, Any]]:
    on = {(each.spec.name, each.spec.method): each for each in plan if each.emit}
    own = listing(each.spec for key, each in on.items() if key not in set(map(_key, rows)))
    return [_in_force(row, on.get(_key(row))) for row in [*rows, *own]]


def _key(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["name"], row["method"]


def _in_force(row: dict[str, Any], found: Configured | None) -> dict[str, Any]:
    if found is None:
        return row | {"on": False}
    return row | {"on": True, "threshold": found.threshold, "options": dict(found.options)}


def as_table(rows: list[dict[str, Any]], width: int | None = None) -> str:
    """One line per evaluator, the doc's first line last; where that is wider than `width`, `as_list`."""
    heads = ("NAME", "SCOPE", "VERSION", "METHOD", "NEEDS", "OPTIONS", "WHAT IT SAYS")
    cells = [
        heads,
        *(
            (
                *(row["name"], row["scope"], row["version"], row["method"]),
                ",".join(row["needs"]) or "-",
                ",".join(row["options"]) or "-",
                _says(row),
            )
            for row in rows
        ),
    ]
    if any("on" in row for row in rows):
        states = ("ON", *("yes" if row["on"] else "-" for row in rows))
        cells = [(line[0], on, *line[1:]) for line, on in zip(cells, states, strict=True)]
    lines = _aligned(cells)
    if width is not None and max(map(len, lines)) > width:
        lines = as_list(rows, width)
    return "\n".join(lines)


def as_list(rows: list[dict[str, Any]], width: int) -> list[str]:
    heads = _aligned([_head(row) for row in rows])
    lines: list[str] = []
    for row, head in zip(rows, heads, strict=True):
        lines += [head.rstrip(), folded(f"    {_says(row)}", width, indent=0)]
        if row["options"]:
            lines.append(folded(f"    options: {', '.join(row['options'])}", width, indent=9))
    return lines


def _head(row: Mapping[str, Any]) -> tuple[str, ...]:
    state = () if "on" not in row else ("on" if row["on"] else "off",)
    needs = f"needs {', '.join(row['needs'])}" if row["needs"] else ""
    return (row["name"], *state, row["scope"], row["method"], f"v{row['version']}", needs)


def _aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(line[at]) for line in cells) for at in range(len(cells[0]) - 1)]
    return [
        "  ".join(
            (*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1])
        )
        for line in cells
    ]


def _says(row: Mapping[str, Any]) -> str:
    return str(row["doc"]).strip().partition("\n")[0]
