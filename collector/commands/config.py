"""`spanwise config print|schema`: the configuration as a user would write it, secrets masked; its JSON Schema."""

import json
import re
from pathlib import Path
from typing import Any

import typer
import yaml
from pydantic import SecretStr

from collector.commands.options import Files, Overrides, loaded
from collector.config.strict_yaml import mapped
from collector.config.tree import Config

MASK = "********"
_TEXT = "tag:yaml.org,2002:str"
_BREAKS = re.compile("[\x85\u2028\u2029]")
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")
command = typer.Typer(
    help="Print the effective configuration, or its JSON Schema.", rich_markup_mode=None
)


@command.command("print")
def print_effective(config: Files = None, overrides: Overrides = None) -> None:
    typer.echo(effective(loaded(config, overrides)), nl=False)


@command.command("schema")
def print_schema() -> None:
    typer.echo(json.dumps(schema(), indent=2))


def effective(config: Config) -> str:
    """The whole tree as YAML. Without secrets in it, loading it gives the same configuration."""
    return yaml.dump(
        mapped(config.model_dump(), _written),
        Dumper=_ConfigDumper,
        sort_keys=False,
        allow_unicode=True,
        width=120,
    )


class _ConfigDumper(yaml.SafeDumper):
    """PyYAML's, but for characters that it writes as they are and reads as line breaks."""


def _quoted(_dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return yaml.ScalarNode(_TEXT, text, style='"' if _BREAKS.search(text) else None)


_ConfigDumper.add_representer(str, _quoted)


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a configuration file."""
    described = _by_title(Config.model_json_schema(mode="validation"))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **described,
        "title": "Spanwise",
    }


def _by_title(described: dict[str, Any]) -> dict[str, Any]:
    """Names every definition by its title: a section keeps its published name when its class is renamed."""
    titles = {name: section["title"] for name, section in described["$defs"].items()}
    text = json.dumps(described)
    for name, title in titles.items():
        text = text.replace(f'"#/$defs/{name}"', f'"#/$defs/{title}"')
    renamed = json.loads(text)
    renamed["$defs"] = {titles[name]: section for name, section in renamed["$defs"].items()}
    return renamed


def _written(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return MASK
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str):
        return _CREDENTIALS.sub(f"{MASK}@", value)
    return value
