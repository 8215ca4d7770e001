"""`spanwise evaluators [--format json]`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import typer

from collector.commands.options import TableOrJson
from evaluators.registry import Registry, listing


def command(shape: TableOrJson = "table") -> None:
    """List every evaluator: name, scope, version, method, needs, options, doc."""
    rows = listing(Registry.discover())
    if shape == "json":
        typer.echo(json.dumps(rows, indent=2))
    else:
        typer.echo(as_table(rows))


def as_table(rows: list[dict[str, Any]]) -> str:
    """Columns for a terminal; the doc's first line last."""
    heads = ("NAME", "SCOPE", "VERSION", "METHOD", "NEEDS", "OPTIONS", "WHAT IT SAYS")
    cells = [heads, *(_cells(row) for row in rows)]
    widths = [max(len(line[at]) for line in cells) for at in range(len(heads) - 1)]
    lines = (
        "  ".join(
            (*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1])
        )
        for line in cells
    )
    return "\n".join(lines)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    first = str(row["doc"]).strip().partition("\n")[0]
    return (
        row["name"],
        row["scope"],
        row["version"],
        row["method"],
        ",".join(row["needs"]) or "-",
        ",".join(row["options"]) or "-",
        first,
    )
