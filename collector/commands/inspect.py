"""`spanwise inspect`: what was understood of recorded traces, before any score."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby
from typing import TextIO

from rich.console import Console
from rich.table import Table

from collector.base.printable import escape_json
from collector.commands.options import Files, Overrides, Paths, TableOrLines, loaded
from collector.commands.output import (
    ProgressBar,
    cell,
    find_recordings,
    note_rejected,
    opened,
    width_of,
)
from collector.service.recorded_traces import read_recordings
from evaluators.dialects.show import show
from evaluators.model import Trace

SHOWN = 240  # characters of a question or an answer; `--format jsonl` has all of them


def trace_list(stream: TextIO, traces: Iterable[Trace]) -> None:
    """The traces one after the other, an empty line between two; each is written before the next is read."""
    console = Console(file=stream, width=width_of(stream), highlight=False)
    for number, trace in enumerate(traces):
        if number:
            stream.write("\n")
        with console.capture() as printed:
            console.print(_shown(trace))
        stream.writelines(f"{line.rstrip()}\n" for line in printed.get().splitlines())


def _shown(trace: Trace) -> Table:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True, min_width=8)
    grid.add_column(no_wrap=True, min_width=7)
    grid.add_column(overflow="fold")
    first = trace.trace_id[:8]
    for name, text in _lines(trace):
        grid.add_row(cell(first), name, cell(text))
        first = ""
    return grid


def _lines(trace: Trace) -> Iterator[tuple[str, str]]:
    """What there is, by name; a trace without a session of its own shows none."""
    yield "agent", f"{trace.agent} of {trace.service}"
    if "no_session" not in trace.gaps:
        yield "session", trace.session_id
    calls = [
        call.name + ("!" if call.failed else " (refused)" if call.rejected else "")
        for call in trace.tool_calls
    ]
    named = (
        ("input", _short(trace.input)),
        ("output", _short(trace.output)),
        ("tools", _counted(calls)),
        ("steps", _counted([step.agent or "agent" for step in trace.steps])),
        ("gaps", " ".join(trace.gaps)),
    )
    yield from ((name, text) for name, text in named if text)


def _counted(names: Sequence[str]) -> str:
    """In their order; one that comes several times in a row with how often."""
    runs = ((name, sum(1 for _ in run)) for name, run in groupby(names))
    return ", ".join(name if count == 1 else f"{name} x {count}" for name, count in runs)


def _short(text: str | None) -> str:
    flat = " ".join((text or "").split())
    return flat if len(flat) <= SHOWN else flat[: SHOWN - 1] + "…"


def command(
    paths: Paths, config: Files = None, overrides: Overrides = None, shape: TableOrLines = "table"
) -> None:
    """What Spanwise understood of recorded traces, before any score."""
    settings = loaded(config, overrides)
    found = find_recordings(paths)
    with ExitStack() as stack:
        with ProgressBar(found.files) as bar:
            recorded = stack.enter_context(read_recordings(settings, found.files, bar.read))
        note_rejected(recorded.rejected, recorded.reasons)
        stream = stack.enter_context(opened(None))
        traces = recorded.closed.traces()
        if shape == "jsonl":
            for trace in traces:
                stream.write(escape_json(json.dumps(show(trace), ensure_ascii=False)) + "\n")
        else:
            trace_list(stream, traces)
