"""`spanwise slo`: Prometheus rules on stdout."""

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Annotated

import typer
import yaml

from collector.commands.options import Files, Overrides, loaded
from collector.config.plan import registry_from
from collector.config.tree import Config
from collector.records.external import external_objectives
from collector.records.sent_feedback import external_name
from collector.slo.rules import PAGE, RuleGroup, rules

HEAD = """\
# Prometheus rules of Spanwise. What each alert means and what to do: docs/alerting.md
# Made by `spanwise slo`: make them again rather than edit them.
"""
_PAGE = re.compile(r"https?://[\w.:/~%\[\]-]+")


def command(
    config: Files = None,
    overrides: Overrides = None,
    *,
    objective: Annotated[
        str | None,
        typer.Option(metavar="VALUE", help="Share of scores that is to pass, e.g. 0.9."),
    ] = None,
    evaluator: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An evaluator's own objective; may be repeated."),
    ] = None,
    page: Annotated[str, typer.Option(metavar="URL", help="The page that alerts lead to.")] = PAGE,
    runbook: Annotated[
        str | None,
        typer.Option(metavar="URL", help="What explains the alerts; without it the page's /help."),
    ] = None,
) -> None:
    """Prometheus rules as YAML: drops, runaways, blindness; with an objective burn rates too."""
    settings = loaded(config, overrides)
    common = settings.slo.objective
    if objective is not None:
        common = _share("--objective", objective)
    ours = {each.name for each in registry_from(settings)} | set(settings.judges)
    own = {
        name: each.objective
        for name, each in settings.evaluators.items()
        if each.objective is not None
    }
    own |= external_objectives(settings, ours)
    own |= _given(evaluator or [], settings, ours)
    for option, address in (("--page", page), ("--runbook", runbook)):
        if address is not None and not _PAGE.fullmatch(address):
            raise typer.BadParameter(f"{option}: expected an address like {PAGE}, got `{address}`")
    groups = rules(common, own, page.rstrip("/"), runbook=runbook)
    typer.echo(HEAD + written(groups), nl=False)


def written(groups: Sequence[RuleGroup]) -> str:
    return yaml.dump(
        {"groups": groups}, Dumper=_RulesDumper, sort_keys=False, allow_unicode=True, width=10_000
    )


class _RulesDumper(yaml.SafeDumper):
    """PyYAML's, with texts of several lines as blocks."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    node = dumper.represent_str(text)
    if "\n" in text:
        node.style = "|"
    return node


_RulesDumper.add_representer(str, _text)


def _given(pairs: Sequence[str], settings: Config, ours: AbstractSet[str]) -> Mapping[str, float]:
    said = settings.evaluations
    external = (*(said.names or ()), *said.scales, *said.thresholds)
    known = ours | {external_name(each, ours) for each in external}
    given: dict[str, float] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise typer.BadParameter(f"--evaluator: expected NAME=VALUE, got `{pair}`")
        if name not in known:
            raise typer.BadParameter(
                f"--evaluator: there is no evaluator `{name}`; `spanwise evaluators` lists them,"
                " a judge of your own needs --config FILE"
            )
        given[name] = _share(f"--evaluator {name}", value)
    return given


def _share(option: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise typer.BadParameter(f"{option}: expected a number above 0 and below 1, got `{text}`")
    return value
