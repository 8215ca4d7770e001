"""`spanwise doctor`: which evaluators cannot run on what has arrived, why, and what to set."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.console import Console
from rich.table import Table

from collector.commands.options import Files, Overrides, TableOrJson, loaded
from collector.commands.output import amount, cell, opened
from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.doctor.diagnosis import Diagnosis, Stack, diagnose, stops, without_tasks
from collector.doctor.sources import AdminApi, Seen, seen_by_service, traces_in_recordings
from collector.doctor.unscored import FailingJudge, Unscored, sessions_of, unscored
from collector.offline.recordings import find
from collector.otlp.exporters import exporter_settings
from collector.printable import escape_json
from evaluators.dialects.dialect import NO_SETTING, Advice
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
    if paths:
        found = traces_in_recordings(settings, find(paths))
        seen = Seen(found, sessions_of(found), None)
    else:
        seen = seen_by_service(AdminApi(settings.admin), settings, limit=traces)
    off = (*stops(registry, settings), *without_tasks(seen.traces))
    diagnosis = diagnose(seen.traces, plan=plan, stops=off)
    lacking = unscored(seen.sessions)
    with opened(None) as stream:
        if shape == "json":
            whole = {
                **asdict(diagnosis),
                "unscored": [asdict(each) for each in lacking],
                "judge": seen.judge and asdict(seen.judge),
            }
            stream.write(escape_json(json.dumps(whole, indent=2, ensure_ascii=False)) + "\n")
        else:
            print_unscored(stream, lacking, seen.judge)
            print_diagnosis(stream, diagnosis)
            if not seen.traces and not paths:
                stream.write(_how_to_send(settings))


def print_diagnosis(stream: TextIO, found: Diagnosis) -> None:
    """One table per stack, then the evaluators that are off."""
    console = _console(stream)
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


def _how_to_send(config: Config) -> str:
    receiver = config.receiver
    settings = exporter_settings(
        host=receiver.grpc.host,
        grpc=receiver.grpc.port,
        http=receiver.http.port,
        tls=receiver.tls is not None,
    )
    return "".join(("an agent sends here with\n", *(f"  {each}\n" for each in settings)))


def print_unscored(stream: TextIO, found: Sequence[Unscored], judge: FailingJudge | None) -> None:
    """The sessions without a score, and the judge's newest error."""
    console = _console(stream)
    if found:
        table = Table("service", "sessions", "why", "example", title="No score: low_coverage")
        for each in found:
            row = (each.service, f"{each.sessions}/{each.of}", each.why, each.example)
            table.add_row(*map(cell, row))
        console.print(table)
    if judge is not None:
        count = f"judge: {judge.failed} of {judge.verdicts} verdicts failed"
        error = f"the newest with {judge.type}: {judge.message}"
        console.print(cell(f"{count}, {error}"), soft_wrap=True)
        console.print(cell(f"      {judge.setting}"), soft_wrap=True)


def _console(stream: TextIO) -> Console:
    return Console(file=stream, width=None if stream.isatty() else WIDTH, highlight=False)


def _print_stack(console: Console, stack: Stack) -> None:
    said = ", ".join(stack.dialects) or "no dialect known"
    of = f"{amount(stack.turns, 'turn')} in {amount(stack.traces, 'trace')}"
    console.print(cell(f"{stack.service}: {said}: {of}"))
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
        if advice.setting == NO_SETTING:
            yield f"  {', '.join(lacks)}: nothing can be set"
        else:
            yield f"  {', '.join(lacks)}: set in the agent's process"
            yield f"      {advice.setting}"
        if advice.note:
            yield f"      ({advice.note})"
    yield ""
