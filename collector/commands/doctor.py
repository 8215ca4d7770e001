"""`spanwise doctor`: which evaluators cannot run on what has arrived, why, and what to set."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from collector.base.printable import escape_json, one_line
from collector.commands.options import Files, Overrides, PathsBehindWith, TableOrJson, loaded
from collector.commands.output import folded, opened, width_of
from collector.config.plan import plan_from, registry_from
from collector.doctor.diagnosis import Diagnosis, Stack, Stop, diagnose, stops, without_tasks
from collector.doctor.sources import AdminApi, ServiceSeen, seen_by_service, traces_in_recordings
from collector.doctor.unscored import FailingJudge, Unscored, sessions_of, unscored
from collector.records.what_changed import in_words, what_changed
from collector.service.recorded_traces import recorded_side
from collector.service.recordings import find
from evaluators.counts import amount
from evaluators.dialects.dialect import NO_SETTING, Advice

Parser = PathsBehindWith
FOLDED = 6
"""Spaces before the rest of a line that is folded, beyond its own."""
Paths = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PATH", help="Recordings; without any, the running service is asked."),
]


@dataclass(frozen=True, slots=True)
class Uncut:
    """A line that is there to be copied: it is never folded."""

    text: str


def command(
    paths: Paths = None,
    config: Files = None,
    overrides: Overrides = None,
    shape: TableOrJson = "table",
    *,
    new: Annotated[
        list[Path] | None,
        typer.Option(
            "--with", metavar="NEW...", help="Recordings of after: what changed since PATH."
        ),
    ] = None,
    traces: Annotated[
        int,
        typer.Option("--traces", min=1, help="Newest traces of the running service to look at."),
    ] = 200,
) -> None:
    """Which evaluators cannot run on what has arrived or on PATH, why, and what to set; with NEW what changed."""
    if new and not paths:
        raise typer.BadParameter("recordings are compared as OLD... --with NEW...")
    settings = loaded(config, overrides)
    registry = registry_from(settings, strict=False)
    plan = plan_from(settings, registry=registry)
    if paths:
        found = traces_in_recordings(settings, find([*paths, *(new or ())]))
        seen = ServiceSeen(found, sessions_of(found), None)
    else:
        seen = seen_by_service(AdminApi(settings.admin), settings, limit=traces)
    off = (*stops(registry, settings), *without_tasks(seen.traces))
    diagnosis = diagnose(seen.traces, plan=plan, stops=off)
    lacking = unscored(seen.sessions)
    sides = [recorded_side(settings, find(each).files) for each in (paths, new) if each and new]
    changed = what_changed(sides[0], sides[1]) if new else None
    with opened(None) as stream:
        if shape == "json":
            whole = {
                **asdict(diagnosis),
                "unscored": [asdict(each) for each in lacking],
                "judge": seen.judge and asdict(seen.judge),
                "by_chance": seen.by_chance,
                "switched_off": seen.switched_off,
                "external": seen.external,
                "changed": changed,
            }
            stream.write(escape_json(json.dumps(whole, indent=2, ensure_ascii=False)) + "\n")
        else:
            print_unscored(stream, lacking, seen.judge)
            _print_part(stream, _by_chance(seen.by_chance))
            _print_part(stream, _switched_off(seen.switched_off))
            _print_part(stream, _external(seen.external))
            print_diagnosis(stream, diagnosis)
            if changed is not None:
                lines = in_words(changed) or ["nothing clearly did"]
                _print(stream, ["", "what changed:", *(f"  {each}" for each in lines)])
            if not seen.traces and not paths:
                exporters = (f"  {each}\n" for each in settings.receiver.exporters())
                stream.writelines(("an agent sends here with\n", *exporters))


def print_diagnosis(stream: TextIO, found: Diagnosis) -> None:
    if not found.stacks:
        stream.write("no trace has arrived\n")
    lines = [line for stack in found.stacks for line in _stack(stack)]
    _print(stream, [*lines, *_off(found.stops)])


def print_unscored(stream: TextIO, found: Sequence[Unscored], judge: FailingJudge | None) -> None:
    """The sessions without a score, and the judge's newest error."""
    lines = ["without a score (low_coverage):"] if found else []
    for each in found:
        sessions = f"{each.sessions} of {amount(each.of, 'session')}"
        lines += [f"  {each.service}: {sessions}, e.g. {each.example}", f"      {each.why}"]
    if judge is not None:
        count = f"judge: {judge.failed} of {amount(judge.verdicts, 'verdict')} failed"
        error = f"the newest with {judge.type}: {judge.message}"
        lines += [f"{count}, {error}", f"      {judge.setting}"]
    _print_part(stream, lines)


def _print_part(stream: TextIO, lines: Iterable[str]) -> None:
    if part := [*lines]:
        _print(stream, [*part, ""])


def _print(stream: TextIO, lines: Iterable[str | Uncut]) -> None:
    """The lines, folded between words; what is there to be copied stays in one piece."""
    width = width_of(stream)
    for line in lines:
        text = (
            one_line(line.text) if isinstance(line, Uncut) else folded(line, width, indent=FOLDED)
        )
        stream.write(f"{text}\n")


def _stack(stack: Stack) -> Iterator[str | Uncut]:
    said = ", ".join(stack.dialects) or "no dialect known"
    of = f"{amount(stack.turns, 'turn')} in {amount(stack.traces, 'trace')}"
    yield f"{stack.service}: {said}: {of}"
    for name, texts in (("scopes", stack.scopes), ("OpenTelemetry SDK", stack.sdks)):
        if texts:
            yield f"  {name}: {', '.join(texts)}"
    if not stack.turns:
        yield "  no call of a model or a tool, no step of an agent: there is nothing to score"
    if stack.turns and not stack.findings:
        yield "  nothing is missing"
    for finding in stack.findings:
        of = amount(stack.traces, "trace") if finding.says else amount(stack.turns, "turn")
        lack = f"{finding.lack}: {finding.says}" if finding.says else finding.lack
        yield f"  {lack}: {finding.traces} of {of}, e.g. {finding.example}"
        if finding.stops:
            yield f"      stops or weakens {', '.join(finding.stops)}"
    yield from _settings(stack)
    yield ""


def _by_chance(judges: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for each in judges:
        beside = f"beside {each['name']} of {each['agent']} ({each['service']})"
        yield f"{each['evaluator']}: no better than chance {beside}: rank {each['rank']:.2f},"
        yield f"      at most {each['rank_upper']:.2f}, {amount(each['samples'], 'pair')}"
        yield "      read where they differ (page: Evaluators, agreement), then change its rubric or model"


def _switched_off(evaluators: Sequence[str]) -> Iterator[str]:
    for name in evaluators:
        yield f"{name}: switched off for ten minutes after three deaths or time-outs"
        yield f"      the log says what it did: correct it, or raise evaluators.{name}.timeout"


def _external(evaluators: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for each in evaluators:
        version = f", version {each['version']}" if each["version"] else ""
        yield f"{each['evaluator']} of {each['agent']} ({each['service']}): {amount(each['count'], 'score')}"
        yield f"      sent by {each['source'] or 'a sender without a scope'}{version}"
        if each["low"] is not None:
            yield f"      values from {each['low']:g} to {each['high']:g}"
        yield from (f"      {missing}" for missing in each["missing"] or ("nothing is missing",))


def _off(stops: Sequence[Stop]) -> Iterator[str | Uncut]:
    """Each setting once, and whom it switches on, by method."""
    switched: dict[tuple[str, str], dict[str, list[str]]] = {}
    for stop in stops:
        by_method = switched.setdefault((stop.why, stop.setting), {})
        by_method.setdefault(stop.method, []).append(stop.evaluator)
    if stops:
        yield "off, and what switches them on:"
    for (why, setting), by_method in switched.items():
        yield Uncut(f"  {why}: {setting}")
        for method, evaluators in by_method.items():
            yield f"      {method}: {', '.join(evaluators)}"


def _settings(stack: Stack) -> Iterator[str | Uncut]:
    fixed: dict[Advice, list[str]] = {}
    for finding in stack.findings:
        for advice in finding.advice:
            fixed.setdefault(advice, []).append(finding.lack)
    for advice, lacks in fixed.items():
        if advice.setting == NO_SETTING:
            yield f"  {', '.join(lacks)}: nothing can be set"
        else:
            yield f"  {', '.join(lacks)}: set in the agent's process"
            yield Uncut(f"      {advice.setting}")
        if advice.note:
            yield f"      ({advice.note})"
