"""`spanwise inspect`: what was understood of recorded traces, before any score."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from collector.commands.options import Files, Overrides, Paths, loaded
from collector.commands.output import note, opened, progress_over, trace_table
from collector.config.tree import Config
from collector.offline import recordings
from collector.offline.evaluate import read_recordings
from evaluators.dialects.show import show

HELP = "What Spanwise understood of recorded traces, before any score."


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("inspect", help=HELP)(command)


def command(
    paths: Paths,
    config: Files = None,
    overrides: Overrides = None,
    shape: Annotated[
        Literal["table", "jsonl"], typer.Option("--format", help="table or jsonl.")
    ] = "table",
) -> None:
    """Parse and run."""
    inspect(loaded(config, overrides), paths, as_jsonl=shape == "jsonl")


def inspect(config: Config, paths: Sequence[Path], *, as_jsonl: bool) -> None:
    """Print one normalised trace per line, or a table.

    Raises:
        ConfigError: a path that is not there or no recording.
    """
    found = recordings.find(paths)
    for left_out in found.left_out:
        note(f"{left_out}: left out, it holds the logs signal")
    with progress_over(found.files) as progress:
        read = asyncio.run(read_recordings(config, found.files, progress))
    if read.rejected:
        note(f"{read.rejected} spans rejected: {'; '.join(read.reasons)}")
    with opened(None) as stream:
        if as_jsonl:
            for trace in read.traces:
                stream.write(json.dumps(show(trace), ensure_ascii=False) + "\n")
        else:
            trace_table(stream, read.traces)
