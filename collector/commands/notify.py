"""`spanwise notify --test [NAME]`: tries the targets of `notify`."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from collector.base.clock import wall
from collector.base.errors import ConfigError, Permanent, Retryable
from collector.commands.options import Files, Overrides, loaded
from collector.config.tree import Config
from collector.notices.messenger import Messenger
from collector.notices.notice import Notice
from collector.slo.rules import HELP


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Targets under `notify.to`; without any, all."),
    ] = None,
    config: Files = None,
    overrides: Overrides = None,
    *,
    test: Annotated[
        bool, typer.Option("--test", help="Send one notice marked as a test, and its end.")
    ] = False,
) -> None:
    """Try the targets of `notify`: each is sent one notice marked as a test, and its end."""
    settings = loaded(config, overrides)
    if not test:
        raise typer.BadParameter("give --test; alerts themselves are sent by `spanwise run`")
    chosen = _chosen(settings, names or [])
    failed = asyncio.run(_tried(settings, chosen))
    if failed:
        raise ConfigError("\n".join(failed))


def _chosen(settings: Config, names: Sequence[str]) -> Sequence[str]:
    targets = settings.notify.to
    if not targets:
        raise ConfigError("notify.to: no target is set, such as {chat: {slack: ${env:SLACK_URL}}}")
    for name in names:
        if name not in targets:
            raise ConfigError(f"notify.to: no target `{name}`; there are {', '.join(targets)}")
    return names or [*targets]


async def _tried(settings: Config, names: Sequence[str]) -> list[str]:
    """One line for each target that did not take both notices."""
    failed: list[str] = []
    for name in names:
        messenger = Messenger(name, settings.notify.to[name])
        now = wall()
        firing = _test_notice(now, settings.notify.page)
        try:
            await messenger.send([firing], now)
            await messenger.send([replace(firing, state="resolved", end=now + 1)], now + 1)
        except (Retryable, Permanent) as error:
            text = str(error)
            path = f"notify.to.{name}"
            failed.append(text if text.startswith(path) else f"{path}: {text}")
        else:
            typer.echo(f"{name}: sent a test notice, and its end")
        finally:
            await messenger.close()
    return failed


def _test_notice(now: float, page: str | None) -> Notice:
    return Notice(
        labels=(("alertname", "SpanwiseTest"), ("severity", "ticket")),
        state="firing",
        start=now,
        end=None,
        summary="This is a test of Spanwise's notices; nothing is wrong",
        description="`spanwise notify --test` sent it.",
        runbook=page and f"{page.rstrip('/')}{HELP}",
        page=page,
    )
