"""`spanwise replay`: the log's history scored again, e.g. after a rubric or a version changed.

It works on a copy: trace records of the disk log are read while the service is stopped, made traces again from
their raw spans by today's rules, and scored in a log in memory. The signals come out as JSONL; consumers that
upsert take them, for a changed version or option is another signal id. The log stays as it is, but for what the
judge was paid: that counts against the budget of the day (the log's verdicts are read first) and is cached.
"""

import asyncio
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from typing import Annotated

import typer

from collector.base.clock import wall
from collector.base.errors import ConfigError
from collector.base.files import keep_private
from collector.commands.aggregates import Aggregates
from collector.commands.evaluate import Report
from collector.commands.options import Evaluators, Files, Output, Overrides, loaded, names
from collector.commands.output import note, opened
from collector.config.plan import plan_from
from collector.config.values import parse_duration
from collector.service.evaluation import ClosedSession
from collector.service.replay import rescore
from evaluators.counts import amount


def command(
    config: Files = None,
    overrides: Overrides = None,
    *,
    since: Annotated[
        str | None,
        typer.Option(metavar="T", help="Only traces from then on: 24h, 30m, or an RFC 3339 time."),
    ] = None,
    evaluators: Evaluators = None,
    output: Output = None,
) -> None:
    """Score what the log holds again, as after a rubric changed; the service is stopped meanwhile."""
    settings, only = loaded(config, overrides), names(evaluators)
    first = begin(since, now=wall())
    if settings.log.kind != "disk":
        raise ConfigError("log.kind: replay reads the disk log; set log.kind: disk")
    if not (settings.data_dir / "log").is_dir():
        raise ConfigError(f"data_dir: there is no log in {settings.data_dir}")
    keep_private(settings.data_dir)
    aggregates = Aggregates()
    written = 0
    with ExitStack() as stack:
        report = Report(lambda: stack.enter_context(opened(output)), "jsonl")

        def closed(session: ClosedSession) -> None:
            nonlocal written
            written += len(session.signals)
            aggregates.add(session)
            report.add(session)

        plan = plan_from(settings, only=only)
        done = asyncio.run(rescore(settings, plan, closed, since=first))
        summed = aggregates.over(done.traces)
        report.end(summed)
    note(f"{amount(len(done.traces), 'trace')}, {amount(written, 'signal')}")
    for name, each in summed["evaluators"].items():
        mean = each["scores"]["mean"] if each["scores"] else None
        note(f"{name}: {each['outcomes']}" + ("" if mean is None else f", mean {mean:.4f}"))


def begin(since: str | None, *, now: float) -> float:
    """Unix seconds of the time, or of the time so long before `now`.

    Raises:
        ConfigError: neither a duration nor a time.
    """
    if since is None:
        return 0.0
    if since[-1:].isalpha():  # digits alone are a date: 20261125
        with suppress(ValueError):
            return now - float(parse_duration(since))
    try:
        time = datetime.fromisoformat(since)
    except ValueError as error:
        wanted = "a duration such as 24h or a time such as 2026-01-31T12:00:00Z"
        raise ConfigError(f"--since: expected {wanted}, got `{since}`") from error
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
