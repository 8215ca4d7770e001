"""`spanwise evaluators [--format json]`."""

# ruff: noqa: D102 - the protocol's members are the fields of evaluators.declare.Spec

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Annotated, Any, Literal, Protocol

import typer


class Declared(Protocol):
    """What the list says of an evaluator."""

    @property
    def name(self) -> str: ...
    @property
    def scope(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def needs(self) -> Iterable[str]: ...
    @property
    def options(self) -> Mapping[str, Any]: ...
    @property
    def doc(self) -> str: ...


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("evaluators")(evaluators)


def evaluators(
    shape: Annotated[
        Literal["table", "json"], typer.Option("--format", help="table or json.")
    ] = "table",
) -> None:
    """List every evaluator: name, scope, version, method, needs, options, doc."""
    rows = listed(discovered())
    if shape == "json":
        typer.echo(json.dumps(rows, indent=2))
    else:
        typer.echo(as_table(rows))


def discovered() -> Iterable[Declared]:
    """Every evaluator that is installed."""
    registry: Iterable[Declared] = import_module("evaluators.registry").Registry.discover()
    return registry


def listed(declared: Iterable[Declared]) -> list[dict[str, Any]]:
    """As `--format json` and `/api/v1/evaluators` list them, by scope and name."""
    rows = [
        {
            "name": each.name,
            "scope": each.scope,
            "version": each.version,
            "method": each.method,
            "needs": list(each.needs),
            "options": dict(each.options),
            "doc": each.doc,
        }
        for each in declared
    ]
    return sorted(rows, key=lambda row: (row["scope"] != "trace", row["name"], row["method"]))


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
