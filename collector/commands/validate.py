"""`spanwise validate [--config FILE ...] [--connect]`."""

from typing import Annotated

import typer

from collector.base.errors import ConfigError
from collector.base.version import conflicting_distributions
from collector.commands.options import Files, Overrides, loaded
from collector.config.plan import plan_from, registry_from


def command(
    config: Files = None,
    overrides: Overrides = None,
    *,
    connect: Annotated[
        bool,
        typer.Option(
            "--connect", help="Also try Kafka (topics, sizes), every sink, `forward` and the judge."
        ),
    ] = False,
) -> None:
    """Check the configuration; exit 1 with one line per bad field."""
    wrong = conflicting_distributions()
    try:
        settings = loaded(config, overrides)
        # Evaluators' names and options: only the registry knows them.
        plan_from(settings, registry=registry_from(settings))
    except ConfigError as error:
        raise ConfigError("\n".join([*str(error).splitlines(), *wrong])) from error
    if wrong:
        raise ConfigError("\n".join(wrong))
    if connect:
        # Only here: it imports the Kafka client.
        from collector.doctor.connectivity import connect_all  # noqa: PLC0415

        typer.echo(f"tried, and all right: {', '.join(connect_all(settings))}")
    typer.echo("the configuration is valid")
