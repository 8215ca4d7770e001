"""`spanwise evaluate`: recordings to signals, without a service."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from collector.commands.options import (
    Evaluators,
    Files,
    Output,
    Overrides,
    Paths,
    TableOrLines,
    loaded,
    names,
)
from collector.commands.output import (
    find_recordings,
    note,
    note_rejected,
    opened,
    progress_over,
    signal_table,
    summary_table,
)
from collector.config.plan import plan_from
from collector.errors import ConfigError
from collector.offline.recordings import evaluate_recordings
from collector.records.traces import RunRecord
from evaluators.formulas import distribution
from evaluators.formulas.task_runs import Run, task_passing
from evaluators.model import Trace

BELOW = 1
"""Exit status when --fail-under is not met."""


def command(
    paths: Paths,
    config: Files = None,
    overrides: Overrides = None,
    *,
    shape: TableOrLines = "table",
    output: Output = None,
    summary: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The aggregates as JSON.")
    ] = None,
    evaluators: Evaluators = None,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Exit 1 when the mean is below; repeatable."),
    ] = None,
) -> None:
    """Score recordings offline; exit 1 when they hold no trace."""
    settings = loaded(config, overrides)
    only = names(evaluators)
    limits = dict(map(_limit, fail_under or ()))
    plan = plan_from(settings, only=only)
    unknown = limits.keys() - {c.spec.name for c in (*plan.trace, *plan.session, *plan.judged)}
    if unknown:
        raise ConfigError(f"--fail-under: no evaluator `{min(unknown)}` runs here")
    found = find_recordings(paths)
    with progress_over(found.files) as progress:
        scored = asyncio.run(evaluate_recordings(settings, plan, found.files, progress, only=only))
    note_rejected(scored)
    if not scored.traces:
        raise ConfigError(f"{', '.join(map(str, paths))}: no trace to evaluate; name recordings")
    signals = [msgspec.json.decode(each) for each in scored.signals]
    summed = summarise(signals, scored.traces)
    if scored.runs:
        summed["tasks"] = passing(scored.runs, window=settings.tasks.window)
    with opened(output) as stream:
        if shape == "jsonl":
            stream.writelines(line.decode() + "\n" for line in scored.signals)
        else:
            signal_table(stream, [each for each in signals if each["final"]])
            summary_table(stream, summed)
    if summary is not None:
        summary.write_text(json.dumps(summed, indent=2) + "\n")
    raise typer.Exit(_judged(summed, limits))


def _limit(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name.strip(), float(value)
    except ValueError as error:
        raise ConfigError(f"--fail-under: expected NAME=VALUE, got `{text}`") from error


def summarise(signals: Sequence[Mapping[str, Any]], traces: Sequence[Trace]) -> dict[str, Any]:
    """Cogitator's aggregates over the final scores of each evaluator, and over all traces."""
    scores: dict[str, list[float]] = defaultdict(list)
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for signal in signals:
        if signal["final"]:
            counts[signal["evaluator"]][signal["outcome"]] += 1
            if signal["score"] is not None:
                scores[signal["evaluator"]].append(signal["score"])
    return {
        "traces": len(traces),
        "evaluators": {
            name: {
                "outcomes": dict(counts[name]),
                "scores": distribution.aggregate(scores[name]) if scores[name] else None,
            }
            for name in sorted(counts)
        },
        "latency": distribution.latency([each.duration * 1000 for each in traces]),
        "cost": distribution.cost([e.cost_usd for e in traces if e.cost_usd is not None]),
        "token_usage": distribution.token_usage(
            [
                (each.tokens.input or 0, each.tokens.output or 0)
                for each in traces
                if each.tokens.input is not None or each.tokens.output is not None
            ]
        ),
    }


def passing(runs: Sequence[RunRecord], *, window: int) -> dict[str, Any]:
    """pass@k and pass^k by service, agent and k; recordings have one log time, so the spans' own tells the newest."""
    told = [
        Run(
            service=each.service,
            agent=each.agent,
            task_id=each.task_id,
            session_id=each.session_id,
            ended=each.named_at / 1e9,
            success=each.success,
        )
        for each in runs
        if each.success is not None
    ]
    return {
        "runs": len(runs),
        "without_success": len(runs) - len(told),
        "passing": [
            {"service": service, "agent": agent, **asdict(each)}
            for (service, agent), every in task_passing(told, window=window).items()
            for each in every
        ],
    }


def _judged(summed: Mapping[str, Any], fail_under: Mapping[str, float]) -> int:
    """The mean of final scores against each limit; none scored counts as below."""
    status = 0
    for name, limit in fail_under.items():
        scores = summed["evaluators"].get(name, {}).get("scores")
        if scores is None:
            note(f"{name}: nothing was scored, so it is below {limit:g}")
            status = BELOW
        elif scores["mean"] < limit:
            note(f"{name}: mean {scores['mean']:.4f} is below {limit:g}")
            status = BELOW
    return status
