"""`spanwise config print|schema`."""

from __future__ import annotations

import json

import typer

from collector.commands.options import Files, Overrides, loaded
from collector.config import effective


def register(app: typer.Typer) -> None:
    """Add the command."""
    group = typer.Typer(
        help="Print the effective configuration, or its JSON Schema.", rich_markup_mode=None
    )
    group.command("print")(print_effective)
    group.command("schema")(print_schema)
    app.add_typer(group, name="config")


def print_effective(config: Files = None, overrides: Overrides = None) -> None:
    """Print the effective configuration as YAML, secrets masked."""
    typer.echo(effective.effective(loaded(config, overrides)), nl=False)


def print_schema() -> None:
    """Print the JSON Schema of a configuration file."""
    typer.echo(json.dumps(effective.schema(), indent=2))
