"""compose.yaml as its tests read it, and the specification's own schema."""

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from tests.support.service import ROOT

VARIABLE = re.compile(r"\$\{\w+:-([^}]*)\}")


def services() -> Mapping[str, Any]:
    """By name, with the parts that they share filled in."""
    return composed()["services"]


def composed() -> Any:
    """The whole file."""
    return yaml.safe_load((ROOT / "compose.yaml").read_text())


def environment(service: Mapping[str, Any]) -> dict[str, str]:
    """The variables of one of our containers: those of the image, then those of the service, with their defaults."""
    (image,) = re.findall(
        r"^ENV (PATH=.*?[^\\])$", (ROOT / "Dockerfile").read_text(), re.MULTILINE | re.DOTALL
    )
    found = dict(re.findall(r"(\w+)=(\S+)", image))
    found |= {
        name: VARIABLE.sub(r"\1", value) for name, value in service.get("environment", {}).items()
    }
    return {name: value for name, value in found.items() if name.startswith("SPANWISE_")}


def schema() -> Any:
    """The JSON Schema of the specification (tests/data/compose/README.md)."""
    return json.loads((ROOT / "tests" / "data" / "compose" / "compose-spec.json").read_text())
