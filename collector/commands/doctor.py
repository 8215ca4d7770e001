"""`spanwise doctor`: which evaluators cannot run on what has arrived, why, and what to set."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.console import Console
from rich.table import Table

from collector.commands.options import Files, Overrides, TableOrJson, loaded
from collector.commands.output import cell, opened
from collector.config.plan import plan_from
from collector.doctor.diagnosis import Diagnosis, Stack, diagnose, stops, without_tasks
from collector.doctor.sources import AdminApi, traces_in_recordings, traces_of_service
from collector.offline.recordings import find
from collector.printable import escape_json
from evaluators.dialects.dialect import Advice
from evaluators.registry import Registry

WIDTH = 140
Paths = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[PATH...]", help="Recordings; without any, the running service is asked."
    ),
]


def command(
    paths: Paths = None,
    config: Files = None,
    overrides: Overrides = None,
    shape: TableOrJson = "table",
    traces: Annotated[
        int,
        typer.Option("--traces", min=1, help="Newest traces of the running service to look at."),
    ] = 200,
) -> None:
    """Which evaluators cannot run on what has arrived (or on PATH), why, and what mends it."""
    settings = loaded(config, overrides)
    registry = Registry.discover()
    plan = plan_from(settings, registry=registry)
    seen = (
        traces_in_recordings(settings, find(paths))
        if paths
        else traces_of_service(AdminApi(settings.admin), settings, limit=traces)
    )
    off = (*stops(registry, settings), *without_tasks(seen))
    diagnosis = diagnose(seen, plan=plan, stops=off)
    with opened(None) as stream:
        if shape == "json":
            text = json.dumps(asdict(diagnosis), indent=2, ensure_ascii=False)
            stream.write(escape_json(text) + "\n")
        else:
            print_diagnosis(stream, diagnosis)


def print_diagnosis(stream: TextIO, found: Diagnosis) -> None:
    """One table per stack, then the evaluators that are off."""
    console = Console(file=stream, width=None if stream.isatty() else WIDTH, highlight=False)
    if not found.stacks:
        console.print("no trace has arrived")
    for stack in found.stacks:
        _print_stack(console, stack)
    if found.stops:
        table = Table("evaluator", "method", "off because", "set", title="Configuration")
        for stop in found.stops:
            cells = (stop.evaluator, stop.method, stop.why, stop.setting)
            table.add_row(*map(cell, cells))
        console.print(table)


def _print_stack(console: Console, stack: Stack) -> None:
    said = ", ".join(stack.dialects) or "no dialect known"
    console.print(cell(f"{stack.service}: {said}: {stack.turns} turns in {stack.traces} traces"))
    for name, texts in (("scopes", stack.scopes), ("SDK", stack.sdks)):
        if texts:
            console.print(cell(f"  {name}: {', '.join(texts)}"))
    if not stack.findings:
        console.print("  nothing is missing\n")
        return
    table = Table("missing", "turns", "stops or weakens", "example")
    for finding in stack.findings:
        turns = f"{finding.traces}/{stack.turns}"
        table.add_row(
            *map(cell, (finding.lack, turns, ", ".join(finding.stops) or "-", finding.example))
        )
    console.print(table)
    for line in _settings(stack):
        console.print(cell(line), soft_wrap=True)


def _settings(stack: Stack) -> Iterator[str]:
    """One line per setting, never folded: it is there to be copied."""
    mended: dict[Advice, list[str]] = {}
    for finding in stack.findings:
        for advice in finding.advice:
            mended.setdefault(advice, []).append(finding.lack)
    for advice, lacks in mended.items():
        yield f"  {', '.join(lacks)}: set in the agent's process"
        yield f"      {advice.setting}"
        if advice.note:
            yield f"      ({advice.note})"
    yield ""
