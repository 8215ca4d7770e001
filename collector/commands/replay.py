"""`spanwise replay`: the log's history scored again, e.g. after a rubric or a version changed.

It works on a copy: trace records of the disk log are read while the service is stopped, made traces again from
their raw spans by today's rules, and scored in a log in memory. The signals come out as JSONL; consumers that
upsert take them, for a changed version or option is another signal id. The log stays as it is, but for what the
judge was paid: that counts against the budget of the day (the log's verdicts are read first) and is cached.
"""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from collector.clock import wall
from collector.commands.evaluate import summarise
from collector.commands.options import Files, Overrides, loaded
from collector.commands.output import note, opened
from collector.config.plan import plan_from
from collector.config.tree import Config, parse_duration
from collector.errors import ConfigError
from collector.offline.replay import rescore

HELP = (
    "Score the log's history again, e.g. after a rubric changed; the service is stopped meanwhile."
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("replay", help=HELP)(command)


def command(
    config: Files = None,
    overrides: Overrides = None,
    *,
    since: Annotated[
        str | None,
        typer.Option(metavar="T", help="Only traces from then on: 24h, 30m, or an RFC 3339 time."),
    ] = None,
    evaluators: Annotated[
        str | None, typer.Option(metavar="A,B", help="Emit only these evaluators.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write there, not to stdout.")
    ] = None,
) -> None:
    """Parse and run."""
    only = None if evaluators is None else [e.strip() for e in evaluators.split(",") if e.strip()]
    replay(loaded(config, overrides), since=_since(since), only=only, output=output)


def replay(config: Config, *, since: float, only: list[str] | None, output: Path | None) -> None:
    """Score again and print.

    Raises:
        ConfigError: the log is in use, there is none, or the configuration does not fit.
    """
    if config.log.kind != "disk":
        raise ConfigError("log.kind: replay reads the disk log; set log.kind: disk")
    if not (config.data_dir / "log").is_dir():
        raise ConfigError(f"data_dir: there is no log in {config.data_dir}")
    scored = asyncio.run(rescore(config, plan_from(config, only=only), since=since, only=only))
    with opened(output) as stream:
        stream.writelines(line.decode() + "\n" for line in scored.signals)
    signals = [json.loads(each) for each in scored.signals]
    counts = summarise(signals, scored.traces)["evaluators"]
    note(f"{len(scored.traces)} traces, {len(signals)} signals")
    for name, each in counts.items():
        mean = each["scores"]["mean"] if each["scores"] else None
        note(f"{name}: {each['outcomes']}" + ("" if mean is None else f", mean {mean:.4f}"))


def _since(text: str | None) -> float:
    """Unix seconds.

    Raises:
        ConfigError: neither a duration nor a time.
    """
    if text is None:
        return 0.0
    try:
        return wall() - float(parse_duration(text))
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        wanted = "a duration such as 24h or a time such as 2026-01-31T12:00:00Z"
        raise ConfigError(f"--since: expected {wanted}, got `{text}`") from error
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
