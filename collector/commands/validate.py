"""`spanwise validate [--config FILE ...] [--connect]`."""

from __future__ import annotations

from typing import Annotated

import typer

from collector.commands.options import Files, Overrides, loaded
from collector.config.conflicting_distributions import neighbours
from collector.config.plan import plan
from collector.errors import ConfigError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("validate")(validate)


def validate(
    config: Files = None,
    overrides: Overrides = None,
    *,
    connect: Annotated[
        bool, typer.Option("--connect", help="Also try Kafka (topics, sizes) and the judge.")
    ] = False,
) -> None:
    """Check the configuration; exit 1 with one line per bad field."""
    wrong = neighbours()
    try:
        settings = loaded(config, overrides)
        plan(settings)  # evaluators' names and options: only the registry knows them
    except ConfigError as error:
        raise ConfigError("\n".join([*str(error).splitlines(), *wrong])) from error
    if wrong:
        raise ConfigError("\n".join(wrong))
    if connect:
        # Only here: it imports the Kafka client.
        from collector.doctor.connectivity import connect as try_out  # noqa: PLC0415

        try_out(settings)
    typer.echo("the configuration is valid")
