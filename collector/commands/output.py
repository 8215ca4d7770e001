"""Where commands write: results to stdout or a file, everything else to stderr; and the tables for people.

Every value of a table that came from a trace or a file name is a `cell`: plain text, nothing that commands a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from collector.errors import ConfigError
from collector.offline.recordings import EvaluationResult, Recordings, find
from collector.printable import one_line, write_line
from evaluators.model import Trace

WIDTH = 140


def note(line: str) -> None:
    """One line beside the result."""
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


def note_rejected(result: EvaluationResult) -> None:
    """One line about the spans that were rejected, if any were."""
    if result.rejected:
        note(f"{result.rejected} spans rejected: {'; '.join(result.reasons)}")


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
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("reading", total=len(files))

        def advance(path: Path) -> None:
            bar.update(task, advance=1, description=one_line(path.name))

        yield advance


def cell(text: str) -> Text:
    """What a table or a line for a person shows of a text that may come from a trace."""
    return Text(one_line(text))


def signal_table(stream: TextIO, signals: Sequence[Mapping[str, Any]]) -> None:
    """One row per (subject, evaluator)."""
    table = Table("service", "session", "trace", "evaluator", "score", "outcome", "why")
    for signal in signals:
        table.add_row(
            *map(
                cell,
                (
                    signal["service"],
                    signal["session_id"][:24],
                    (signal["trace_id"] or "")[:8],
                    signal["evaluator"],
                    _number(signal["score"]),
                    signal["outcome"],
                    _short(signal["explanation"] or signal["reason"], 48),
                ),
            )
        )
    _console(stream).print(table)


def summary_table(stream: TextIO, summed: Mapping[str, Any]) -> None:
    """Aggregates per evaluator, then latency, cost and tokens of all traces."""
    columns = ("mean", "median", "p50", "p95", "p99", "min", "max", "stdDev")
    table = Table("evaluator", "scored", *columns)
    for name, each in summed["evaluators"].items():
        scores: Mapping[str, float] = each["scores"] or {}
        cells = [_number(scores.get(column)) for column in columns]
        table.add_row(cell(name), str(each["outcomes"].get("scored", 0)), *cells)
    console = _console(stream)
    console.print(table)
    console.print(f"{summed['traces']} traces", highlight=False)
    for name in ("latency", "cost", "token_usage"):
        values = "  ".join(f"{key} {value:.6g}" for key, value in summed[name].items())
        console.print(f"{name}: {values}", highlight=False)
    if "tasks" in summed:
        _task_table(console, summed["tasks"])


def _task_table(console: Console, tasks: Mapping[str, Any]) -> None:
    table = Table("service", "agent", "k", "tasks", "left out", "pass@k", "pass^k")
    for each in tasks["passing"]:
        names = map(cell, (each["service"], each["agent"]))
        counts = (str(each[name]) for name in ("k", "tasks", "left_out"))
        table.add_row(*names, *counts, *map(_number, (each["pass_at_k"], each["pass_pow_k"])))
    console.print(table)
    unsaid = tasks["without_success"]
    console.print(f"{tasks['runs']} task runs, {unsaid} without a success", highlight=False)


def trace_table(stream: TextIO, traces: Sequence[Trace]) -> None:
    """One row per trace; with a column for steps of agents where there are any."""
    with_steps = any(trace.steps for trace in traces)
    heads = ("trace", "service", "agent", "session", "input", "output", "tools")
    table = Table(*heads, *(["steps"] if with_steps else []), "gaps")
    for trace in traces:
        steps = " ".join(step.agent or "agent" for step in trace.steps)
        table.add_row(
            *map(
                cell,
                (
                    trace.trace_id[:8],
                    trace.service,
                    trace.agent,
                    trace.session_id[:24],
                    _short(trace.input, 32),
                    _short(trace.output, 32),
                    " ".join(call.name + ("!" if call.error else "") for call in trace.tool_calls),
                    *([_short(steps, 64)] if with_steps else []),
                    " ".join(trace.gaps),
                ),
            )
        )
    _console(stream).print(table)


def _console(stream: TextIO) -> Console:
    return Console(file=stream, width=None if stream.isatty() else WIDTH)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _short(text: str | None, length: int) -> str:
    flat = " ".join((text or "").split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"
