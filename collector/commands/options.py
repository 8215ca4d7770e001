"""Options that several commands share."""

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from collector.config.load import load
from collector.config.tree import Config

Files = Annotated[
    list[Path] | None,
    typer.Option("--config", metavar="FILE", help="A YAML file; may be repeated, later wins."),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="One setting; may be repeated."),
]


Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin", metavar="FILE", help="Evaluators of your own: a Python file; repeatable."
    ),
]


def loaded(files: Files, overrides: Overrides, plugins: Plugins = None) -> Config:
    """The configuration of this command line; `plugins` are added to those that it names.

    Raises:
        ConfigError: One line per bad field.
    """
    config = load(files or [], os.environ, overrides or [])
    return config.model_copy(update={"plugins": (*config.plugins, *(plugins or ()))})


Paths = Annotated[
    list[Path],
    typer.Argument(metavar="PATH", help="Recordings: files, or folders with their subfolders."),
]
TableOrJson = Annotated[Literal["table", "json"], typer.Option("--format", help="table or json.")]
TableOrLines = Annotated[
    Literal["table", "jsonl"], typer.Option("--format", help="table or jsonl.")
]
Output = Annotated[Path | None, typer.Option(metavar="FILE", help="Write there, not to stdout.")]
Evaluators = Annotated[str | None, typer.Option(metavar="A,B", help="Emit only these evaluators.")]


def names(evaluators: Evaluators) -> list[str] | None:
    """The names in the text; None: all."""
    if evaluators is None:
        return None
    return [each.strip() for each in evaluators.split(",") if each.strip()]


class PathsBehindWith(TyperCommand):
    """Takes several paths behind one `--with`, as a shell's `*` makes them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """`--with A B` is `--with A --with B`."""
        spread: list[str] = []
        for word in args:
            is_path = not word.startswith("-")
            if is_path and len(spread) >= 2 and spread[-2] == "--with":
                spread.append("--with")
            spread.append(word)
        return super().parse_args(ctx, spread)
