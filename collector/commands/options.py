"""Options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from collector.config.load import load
from collector.config.tree import Config

Files: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option("--config", metavar="FILE", help="A YAML file; may be repeated, later wins."),
]
Overrides: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="One setting; may be repeated."),
]


def loaded(files: Files, overrides: Overrides) -> Config:
    """The configuration of this command line.

    Raises:
        ConfigError: One line per bad field.
    """
    return load(files or [], os.environ, overrides or [])


Paths: TypeAlias = Annotated[
    list[Path],
    typer.Argument(metavar="PATH...", help="Recordings: files, or folders with their subfolders."),
]
