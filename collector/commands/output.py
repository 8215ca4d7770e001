"""Where commands write: results to stdout or a file, everything else to stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from collector.errors import ConfigError


def note(line: str) -> None:
    """One line beside the result."""
    sys.stderr.write(line + "\n")


@contextmanager
def opened(path: Path | None) -> Generator[TextIO]:
    """The file, or stdout.

    Raises:
        ConfigError: the file cannot be written.
    """
    if path is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    try:
        stream = path.open("w", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--output: {path}: {error.strerror}") from error
    with stream:
        yield stream


@contextmanager
def progress_over(files: Sequence[Path]) -> Generator[Callable[[Path], None]]:
    """A bar on a terminal, nothing elsewhere; call what it gives after each file."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("reading", total=len(files))

        def advance(path: Path) -> None:
            bar.update(task, advance=1, description=path.name)

        yield advance
