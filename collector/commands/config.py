"""`spanwise config print|schema`."""

from __future__ import annotations

import json

import typer

from collector.commands.options import Files, Overrides, loaded
from collector.config.effective import effective, schema

command = typer.Typer(
    help="Print the effective configuration, or its JSON Schema.", rich_markup_mode=None
)


@command.command("print")
def print_effective(config: Files = None, overrides: Overrides = None) -> None:
    """Print the effective configuration as YAML, secrets masked."""
    typer.echo(effective(loaded(config, overrides)), nl=False)


@command.command("schema")
def print_schema() -> None:
    """Print the JSON Schema of a configuration file."""
    typer.echo(json.dumps(schema(), indent=2))
