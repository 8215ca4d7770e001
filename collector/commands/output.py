"""Where commands write: results to stdout or a file, everything else to stderr; and the tables for people.

Every value of a table that came from a trace or a file name is a `cell`: plain text, nothing that commands a terminal.
"""

import os
import stat
import sys
import textwrap
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from collector.base.errors import ConfigError
from collector.base.printable import one_line, write_line
from collector.service.recordings import Recordings, find
from evaluators.counts import amount

WIDTH = 140
LEAST = 80
WIDE = 100
"""Cells of a line from which on there is room for long names and four digits."""


_GLUE = "\u00a0"  # a space at which no line is folded


def note(line: str) -> None:
    write_line(sys.stderr, line)


def find_recordings(paths: Sequence[Path]) -> Recordings:
    """The recordings that the paths name; one line for each that is left out.

    Raises:
        ConfigError: a path that is not there or no recording.
    """
    found = find(paths)
    for path, signal in found.left_out.items():
        note(f"{path}: left out, it holds the {signal} signal")
    return found


def note_rejected(count: int, reasons: Sequence[str]) -> None:
    if count:
        note(f"{amount(count, 'span')} rejected: {'; '.join(reasons)}")


@contextmanager
def opened(
    path: Path | None, option: str = "--output", *, newline: str | None = None
) -> Generator[TextIO]:
    """The file that the option names, or stdout.

    Raises:
        ConfigError: the file cannot be written.
    """
    if path is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    try:
        stream = path.open("w", encoding="utf-8", newline=newline)
    except OSError as error:
        raise ConfigError(f"{option}: {path}: {error.strerror}") from error
    with stream:
        yield stream


class ProgressBar:
    """A bar on a terminal, nothing elsewhere: files that are read, then sessions that are scored.

    Sessions that are printed on the terminal show by themselves how far it is.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        console = Console(stderr=True)
        text = TextColumn("{task.description}", markup=False)
        self._bar = Progress(
            *(text, BarColumn(), MofNCompleteColumn()),
            console=console,
            transient=True,
            disable=not console.is_terminal,
            redirect_stdout=False,  # what is written there while the bar is shown goes to a file
        )
        self._task = self._bar.add_task("reading", total=len(files))

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def read(self, path: Path) -> None:
        self._bar.update(self._task, advance=1, description=one_line(path.name))

    def scored(self, number: int, of: int, *, is_shown: bool) -> None:
        """So many sessions of all are scored; `is_shown`: on the terminal."""
        if is_shown:
            self._bar.stop()
        else:
            self._bar.update(self._task, description="scoring", completed=number, total=of)


def cell(text: str) -> Text:
    """What a table or a line for a person shows of a text that may come from a trace."""
    return Text(one_line(text))


def summary_table(stream: TextIO, summed: Mapping[str, Any]) -> None:
    columns = {
        "mean": "mean",
        "p50": "median",
        "p95": "p95",
        "p99": "p99",
        "min": "min",
        "max": "max",
        "stdDev": "stdDev",
    }
    digits = 4 if width_of(stream) >= WIDE else 3
    table = Table("evaluator", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for column in ("scored", *columns.values()):
        table.add_column(column, justify="right", no_wrap=True)
    for name, each in summed["evaluators"].items():
        scores: Mapping[str, float] = each["scores"] or {}
        cells = [_number(scores.get(column), digits) for column in columns]
        table.add_row(cell(name), str(each["outcomes"].get("scored", 0)), *cells)
    console = Console(file=stream, width=None if stream.isatty() else WIDTH)
    console.print(table)
    stream.write("\n")
    console.print(f"{amount(summed['traces'], 'trace')}:", highlight=False)
    stream.writelines(f"{line}\n" for line in _totals(summed, width_of(stream)))
    if "tasks" in summed:
        _task_table(console, summed["tasks"])


def _totals(summed: Mapping[str, Any], width: int) -> Iterator[str]:
    """Latency, cost and tokens: their unit and values, folded between two of them; the median, which is p50, once."""
    for name, unit in (("latency", "ms"), ("cost", "USD"), ("token_usage", "tokens")):
        values = "  ".join(
            f"{key}{_GLUE}{_plain(value)}" for key, value in summed[name].items() if key != "p50"
        )
        line = folded(f"{name:<12} {unit:<7} {values}", width, indent=21)
        yield line.replace(_GLUE, " ")


def _plain(value: float) -> str:
    """Four digits, whole from 1,000 on, never an exponent."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{Decimal(f'{value:.4g}'):f}"


def _task_table(console: Console, tasks: Mapping[str, Any]) -> None:
    table = Table("service", "agent", "k", "tasks", "left out", "pass@k", "pass^k")
    for each in tasks["passing"]:
        names = map(cell, (each["service"], each["agent"]))
        counts = (str(each[name]) for name in ("k", "tasks", "left_out"))
        table.add_row(*names, *counts, *map(_number, (each["pass_at_k"], each["pass_pow_k"])))
    console.print(table)
    unsaid = tasks["without_success"]
    console.print(
        f"{amount(tasks['runs'], 'task run')}, {unsaid} without a success", highlight=False
    )


def width_of(stream: TextIO) -> int:
    """Cells of a line: of the terminal, at least LEAST; elsewhere WIDTH."""
    return max(LEAST, Console(file=stream).width) if stream.isatty() else WIDTH


def is_watched(stream: TextIO) -> bool:
    """Whether it is a terminal, or a pipe, whose reader (`less`, `head`, `jq`) most often writes to one."""
    if stream.isatty():
        return True
    try:
        return stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
    except OSError:  # it has no file
        return False


def _number(value: float | None, digits: int = 4) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def folded(text: str, width: int, *, indent: int) -> str:
    """Lines of at most so many cells, broken between words; all but the first begin with `indent` more spaces."""
    first = len(text) - len(text.lstrip(" "))
    return textwrap.fill(
        one_line(text).lstrip(" "),
        width,
        initial_indent=" " * first,
        subsequent_indent=" " * (first + indent),
        break_long_words=False,
        break_on_hyphens=False,
    )
