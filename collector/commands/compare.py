"""`spanwise compare`: may this release go on? Of a running service, or of recordings of before and after.

The exit code is the answer: 0 pass, 1 fail, 3 inconclusive; 2 where the command line is wrong, a recording cannot be
read or the service does not answer.
"""

import asyncio
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

from collector.base.errors import ConfigError
from collector.base.printable import printable
from collector.commands.ask import as_ours, ask_json
from collector.commands.options import Files, Overrides, PathsBehindWith, loaded
from collector.commands.output import find_recordings, note, note_rejected
from collector.config.plan import plan_from, registry_from
from collector.config.tree import Config
from collector.config.values import parse_duration
from collector.records.comparison import (
    EVALUATOR,
    ScoredSession,
    VersionSide,
    comparison,
    in_words,
    with_faults,
    with_judged,
)
from collector.records.moved import EvaluatorScores, summed
from collector.records.second_opinion import asked_for_opinions
from collector.records.what_changed import in_words as changed_in_words
from collector.records.what_changed import what_changed
from collector.service.evaluation import ClosedSession, evaluate_recordings
from collector.service.recorded_traces import SessionKey, recorded_side
from collector.service.recordings import find
from evaluators.errors import EvaluatorError
from evaluators.formulas.release_verdict import MARGIN
from evaluators.plan import Plan

CODES = {"pass": 0, "fail": 1, "inconclusive": 3}
WRONG = 2
EVERY = 10.0
"""Seconds between two questions to a service."""


Parser = PathsBehindWith


def command(  # noqa: PLR0913 - its options, one by one
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="[OLD]...", help="Recordings of before.")
    ] = None,
    config: Files = None,
    overrides: Overrides = None,
    *,
    new: Annotated[
        list[Path] | None, typer.Option("--with", metavar="NEW...", help="Recordings of after.")
    ] = None,
    url: Annotated[
        str, typer.Option(metavar="URL", help="The page of a running service.")
    ] = "http://127.0.0.1:4390",
    service: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of a running service.")
    ] = None,
    agent: Annotated[str | None, typer.Option(metavar="NAME", help="If it has several.")] = None,
    candidate: Annotated[str | None, typer.Option(metavar="VERSION", help="The release.")] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="VERSION", help="Default: the one before it.")
    ] = None,
    evaluator: Annotated[
        str, typer.Option(metavar="NAME", help="What is compared; it scores sessions.")
    ] = EVALUATOR,
    margin: Annotated[
        float, typer.Option(min=0.001, max=0.5, help="How much worse may pass.")
    ] = MARGIN,
    token: Annotated[str | None, typer.Option(help="Of `admin.bearer_tokens`.")] = None,
    wait: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Ask again while it is inconclusive.")
    ] = None,
    inconclusive: Annotated[
        Literal["pass", "fail"] | None,
        typer.Option(help="The exit code where there is no verdict."),
    ] = None,
    shape: Annotated[
        Literal["table", "json", "github"], typer.Option("--format", help="table, json or github.")
    ] = "table",
) -> None:
    """May this release go on? Exit 0 pass, 1 fail, 3 inconclusive, 2 wrong usage or unreachable."""
    try:
        if new or paths:
            if not (new and paths):
                raise typer.BadParameter("recordings are compared as OLD... --with NEW...")
            found = _of_recordings(loaded(config, overrides), paths, new, evaluator, margin)
            _say(found, shape)
        else:
            if not (service and candidate):
                raise typer.BadParameter("give --service and --candidate, or OLD... --with NEW...")
            asked = {
                "service": service,
                "agent": agent,
                "candidate": candidate,
                "baseline": baseline,
                "evaluator": evaluator,
                "margin": f"{margin:g}",
            }
            with as_ours(url):
                found = _of_service(url, asked, token, _seconds(wait))
                _say(found, shape)
    except (ConfigError, EvaluatorError) as error:
        note(printable(str(error)))
        raise typer.Exit(WRONG) from error
    is_open = found["verdict"] == "inconclusive"
    raise typer.Exit(CODES[(inconclusive if is_open else None) or found["verdict"]])


def _of_service(
    url: str, asked: Mapping[str, str | None], token: str | None, wait: float
) -> dict[str, Any]:
    end = time.monotonic() + wait
    while True:
        given = {name: text for name, text in asked.items() if text}
        found = ask_json(url, "/api/v1/compare", given, token)
        left = end - time.monotonic()
        if found["verdict"] != "inconclusive" or left <= 0:
            return found
        time.sleep(min(EVERY, left))


def _seconds(text: str | None) -> float:
    try:
        return 0.0 if text is None else float(parse_duration(text))
    except ValueError as error:
        raise typer.BadParameter(f"--wait: {error}") from error


def _of_recordings(
    settings: Config, old: Sequence[Path], new: Sequence[Path], evaluator: str, margin: float
) -> dict[str, Any]:
    judge = asked_for_opinions(plan_from(settings)) if evaluator == EVALUATOR else None
    known = {each.name for each in registry_from(settings, strict=False)} | settings.judges.keys()
    ours = evaluator if evaluator in known else EVALUATOR  # beside the scores of others
    plan = plan_from(settings, only=[ours, *([] if judge is None else [judge])])
    scopes = {each.spec.name: each.spec.scope for each in plan}
    signals = [_signals(settings, plan, paths) for paths in (old, new)]
    if evaluator in known:
        is_there = scopes.get(evaluator) == "session"
    else:
        is_there = any(each["evaluator"] == evaluator for side in signals for each in side)
    if not is_there:
        expected = "one that scores sessions, or whose scores are within the recordings"
        raise ConfigError(f"--evaluator: expected {expected}, got `{evaluator}`")

    def ranked(name: str) -> dict[str, Any]:
        before, after = (_scored(each, name) for each in signals)
        return comparison(
            _version(after),
            _version(before),
            service=_only({each["service"] for each in (*before, *after)}),
            agent=_only({each["agent"] for each in (*before, *after)}),
            evaluator=name,
            margin=margin,
            threshold=next((s["threshold"] for s in (*after, *before)), None),
        )

    found = ranked(evaluator)
    if judge is not None:
        found = with_judged(found, ranked(judge))
    changed = what_changed(
        recorded_side(settings, find(old).files, _scores(signals[0])),
        recorded_side(settings, find(new).files, _scores(signals[1])),
    )
    found = with_faults(found, changed)
    return {**found, "changed": None if found["verdict"] == "inconclusive" else changed}


def _scored(signals: Sequence[dict[str, Any]], evaluator: str) -> list[dict[str, Any]]:
    """Of each session the newest final outcome: of itself, or of its last trace where traces are scored."""
    own = [each for each in signals if each["evaluator"] == evaluator and each["final"]]
    return [*{(each["service"], each["session_id"]): each for each in own}.values()]


def _scores(signals: Sequence[Mapping[str, Any]]) -> dict[SessionKey, dict[str, EvaluatorScores]]:
    said: defaultdict[SessionKey, list[tuple[str, float | None, bool | None]]] = defaultdict(list)
    for each in signals:
        outcome = (each["evaluator"], each["score"], each["success"])
        said[each["service"], each["session_id"]].append(outcome)
    return {session: summed(outcomes) for session, outcomes in said.items()}


def _signals(settings: Config, plan: Plan, paths: Sequence[Path]) -> list[dict[str, Any]]:
    """The signals of the plan and of what it is made of, in the order in which their sessions close."""
    signals: list[dict[str, Any]] = []

    def closed(session: ClosedSession) -> None:
        signals.extend(cast("dict[str, Any]", json.loads(line)) for line in session.signals)

    files = find_recordings(paths).files
    done = asyncio.run(evaluate_recordings(settings, plan, files, lambda _: None, closed))
    note_rejected(done.rejected, done.reasons)
    if not done.traces:
        raise ConfigError(f"{', '.join(map(str, paths))}: no trace to compare; name recordings")
    return signals


def _version(signals: Sequence[Mapping[str, Any]]) -> VersionSide:
    scored = [ScoredSession(s["session_id"], s["score"]) for s in signals if s["score"] is not None]
    blind = sum(s["reason"] == "low_coverage" for s in signals)
    return VersionSide(_only({s["agent_version"] for s in signals}), scored, left_out=blind)


def _only(names: set[Any]) -> str | None:
    return next(iter(names)) or None if len(names) == 1 else None


def _say(found: Mapping[str, Any], shape: str) -> None:
    if shape == "json":
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
        return
    line = printable(in_words(found))
    if shape == "github":
        kind = {"pass": "notice", "fail": "error"}.get(found["verdict"], "warning")
        escaped = line.replace("%", "%25")
        sys.stdout.write(f"::{kind} title=Spanwise::{escaped}\n")
        if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(f"### Spanwise: {found['verdict']}\n\n{_markdown(found)}\n{line}\n")
                file.write("".join(f"- {each}\n" for each in _changed(found)))
        return
    for row in (("", "version", "sessions", "mean", "95 % bounds", "fail"), *_rows(found)):
        sys.stdout.write(f"{row[0]:10}{row[1]:16}{row[2]:>9}{row[3]:>8}{row[4]:>16}{row[5]:>8}\n")
    sys.stdout.write(line + "\n")
    for each in _changed(found):
        sys.stdout.write(f"changed: {each}\n")
    if found["sessions"]:
        sys.stdout.write(printable(f"worst: {', '.join(found['sessions'])}") + "\n")


def _changed(found: Mapping[str, Any]) -> list[str]:
    changed = found.get("changed")
    return [] if changed is None else [printable(each) for each in changed_in_words(changed)]


def _markdown(found: Mapping[str, Any]) -> str:
    head = "| | version | sessions | mean | 95 % bounds | fail |\n|---|---|---|---|---|---|\n"
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in _rows(found)]
    return head + "".join(f"| {' | '.join(row)} |\n" for row in escaped)


def _rows(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [_row(name, found[name]) for name in ("baseline", "candidate")]


def _row(name: str, side: Mapping[str, Any]) -> tuple[str, ...]:
    def number(value: float | None, shape: str = "{:.2f}") -> str:
        return "-" if value is None else shape.format(value)

    bounds = "-" if side["mean"] is None else f"{side['lower']:.2f} to {side['upper']:.2f}"
    version = printable(side["version"] or "-")[:15]
    return (
        name,
        version,
        str(side["samples"]),
        number(side["mean"]),
        bounds,
        number(side["fail_ratio"], "{:.0%}"),
    )
