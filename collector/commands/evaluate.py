"""`spanwise evaluate`: recordings to signals, without a service."""

import asyncio
import csv
import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, TextIO

import msgspec
import typer

from collector.base.errors import ConfigError
from collector.base.printable import cell
from collector.commands.aggregates import Aggregates, passing
from collector.commands.junit import JUnitReport
from collector.commands.options import (
    Evaluators,
    Files,
    Output,
    Overrides,
    Paths,
    Plugins,
    TableOrLines,
    loaded,
    names,
)
from collector.commands.output import (
    ProgressBar,
    find_recordings,
    is_watched,
    note,
    note_rejected,
    opened,
    summary_table,
    width_of,
)
from collector.commands.signal_table import SignalTable, fails, reason
from collector.config.forward import Keep
from collector.config.plan import plan_from, registry_from
from collector.forward.recorded import Amount, KeptOfRecordings
from collector.records.sessions import split_session_key
from collector.service.evaluation import ClosedSession, evaluate_recordings

COLUMNS = (
    *("service", "agent", "agent_version", "session_id", "trace_id", "evaluator", "method"),
    *("outcome", "score", "threshold", "success"),
)
"""Fields of the signal; `why` is behind them."""


BELOW = 1  # exit status when --fail-under is not met, or a plug-in could not be imported


def command(  # noqa: PLR0913 - its options, one by one
    paths: Paths,
    config: Files = None,
    overrides: Overrides = None,
    *,
    shape: TableOrLines = "table",
    output: Output = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="List what failed, with why and where.")
    ] = False,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Every score as a row of CSV.")
    ] = None,
    summary: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The aggregates as JSON.")
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Which sessions fell and why, as JUnit XML for CI."),
    ] = None,
    evaluators: Evaluators = None,
    plugins: Plugins = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Print what `forward.keep` would send on, by reason.")
    ] = False,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Exit 1 when the mean is below; repeatable."),
    ] = None,
) -> None:
    """Score recordings offline; exit 1 when they hold no trace, or a plug-in is left out because its import raises."""
    settings = loaded(config, overrides, plugins)
    only = names(evaluators)
    limits = dict(map(_limit, fail_under or ()))
    registry = registry_from(settings, strict=False)
    plan = plan_from(settings, registry=registry, only=only)
    unknown = limits.keys() - {c.spec.name for c in plan}
    if unknown:
        raise ConfigError(f"--fail-under: no evaluator `{min(unknown)}` runs here")
    found = find_recordings(paths)
    aggregates = Aggregates()
    with ExitStack() as stack:
        bar = stack.enter_context(ProgressBar(found.files))
        report = Report(
            lambda: stack.enter_context(opened(output)),
            shape,
            lists=failed,
            rows=None if csv is None else stack.enter_context(opened(csv, "--csv", newline="")),
        )
        cases = JUnitReport() if junit is not None else None
        kept = KeptOfRecordings((settings.forward and settings.forward.keep) or Keep())

        def closed(session: ClosedSession) -> None:
            bar.scored(session.number, session.of, is_shown=is_watched(report.stream))
            if not session.signals:  # its traces are pieces of another session's turns
                return
            aggregates.add(session)
            report.add(session)
            kept.add(map(msgspec.json.decode, session.signals), session.traces if keep else ())
            if cases is not None:
                cases.add(*split_session_key(session.key), session.signals)

        done = asyncio.run(evaluate_recordings(settings, plan, found.files, bar.read, closed))
        note_rejected(done.rejected, done.reasons)
        if not done.traces:
            raise ConfigError(
                f"{', '.join(map(str, paths))}: no trace to evaluate; name recordings"
            )
        summed = aggregates.over(done.traces)
        if aggregates.runs:
            summed["tasks"] = passing(aggregates.runs, window=settings.tasks.window)
        report.end(summed)
    _print_kept(kept.by_reason(done.sizes))
    if summary is not None:
        summary.write_text(json.dumps(summed, indent=2) + "\n")
    missed = {name: _missed(summed, name, limit) for name, limit in limits.items()}
    if junit is not None and cases is not None:
        cases.limits(missed)
        cases.write(junit)
    for why in filter(None, missed.values()):
        note(why)
    raise typer.Exit(BELOW if any(missed.values()) or registry.broken else 0)


class Report:
    """The sessions as they close, as lines of JSON or as a table of what failed; nothing is held."""

    def __init__(
        self,
        open_stream: Callable[[], TextIO],
        shape: str,
        *,
        lists: bool = False,
        rows: TextIO | None = None,
    ) -> None:
        """`open_stream` is called for the first session: a wrong recording leaves an earlier report as it is.

        `lists`: a table has what failed, too; else only the aggregates. `rows`: where every signal is a row of CSV.
        """
        self._open_stream = open_stream
        self._lists = lists
        self._rows = None if rows is None else csv.writer(rows)
        self._shape = shape
        if self._rows is not None:
            self._rows.writerow((*COLUMNS, "why"))

    @cached_property
    def stream(self) -> TextIO:
        return self._open_stream()

    @cached_property
    def _table(self) -> SignalTable:
        return SignalTable(self.stream, width_of(self.stream), shows=fails if self._lists else None)

    def add(self, session: ClosedSession) -> None:
        signals: list[dict[str, Any]] = [*map(msgspec.json.decode, session.signals)]
        if self._rows is not None:
            self._rows.writerows(
                [*(cell(each[name]) for name in COLUMNS), cell(reason(each))] for each in signals
            )
        if self._shape == "jsonl":
            self.stream.writelines(line.decode() + "\n" for line in session.signals)
        else:
            self._table.add(*split_session_key(session.key), signals)

    def end(self, summed: Mapping[str, Any]) -> None:
        """Write the aggregates under a table. A report without sessions is an empty file."""
        stream = self.stream
        if self._shape == "table":
            self._table.end()
            summary_table(stream, summed)


def _print_kept(found: Mapping[str, Amount]) -> None:
    """On stderr: stdout may be a file of signals."""
    if found:
        note(f"{'forward.keep':<14}{'traces':>10}{'spans':>10}{'bytes':>14}")
    for name, each in found.items():
        note(f"{name:<14}{each.traces:>10}{each.spans:>10}{each.size:>14}")


def _limit(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name.strip(), float(value)
    except ValueError as error:
        raise ConfigError(f"--fail-under: expected NAME=VALUE, got `{text}`") from error


def _missed(summed: Mapping[str, Any], name: str, limit: float) -> str | None:
    """Why the mean of final scores does not meet the limit; none scored counts as below. None: it does."""
    scores = summed["evaluators"].get(name, {}).get("scores")
    if scores is None:
        return f"{name}: nothing was scored, so it is below {limit:g}"
    if scores["mean"] < limit:
        return f"{name}: mean {scores['mean']:.4f} is below {limit:g}"
    return None
