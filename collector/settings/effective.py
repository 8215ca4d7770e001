"""The configuration as a user would write it, secrets masked; and its JSON Schema."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import yaml
from pydantic import SecretStr

from collector.config import Config

MASK = "********"
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


def effective(config: Config) -> str:
    """The whole tree as YAML. Without secrets in it, loading it gives the same configuration."""
    return yaml.safe_dump(
        _written(config.model_dump()), sort_keys=False, allow_unicode=True, width=120
    )


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a configuration file."""
    described = Config.model_json_schema(mode="validation")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **described,
        "title": "Spanwise",
    }


def _written(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return MASK
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str):
        return _CREDENTIALS.sub(f"{MASK}@", value)
    if isinstance(value, dict):
        return {key: _written(child) for key, child in cast(dict[str, Any], value).items()}
    if isinstance(value, (list, tuple)):
        return [_written(child) for child in cast(list[Any], value)]
    return value
