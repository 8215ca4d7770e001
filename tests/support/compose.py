"""compose.yaml as its tests read it, and the specification's own schema."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.service import ROOT

MODULE, SUM = (
    "github.com/compose-spec/compose-go/v2@v2.16.2",
    "h1:pTp1DqQwJzFd85GzlWsSszKA1ABrV/ySqsClujIcWA8=",
)
"""The specification's reference implementation, which Docker Compose is made with, and its checksum."""
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
    """The JSON Schema of the specification, from the Go module that its authors publish."""
    go = shutil.which("go")
    if go is None:
        why = "NO GO, NOT TESTED: the Compose specification's schema comes in a Go module"
        if os.environ.get("SPANWISE_REQUIRE_GO") == "1":
            pytest.fail(why)
        pytest.skip(why)
    asked = subprocess.run(
        [go, "mod", "download", "-json", MODULE],
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    told = json.loads(asked.stdout or "{}")
    assert told.get("Sum") == SUM, asked.stdout + asked.stderr
    return json.loads((Path(told["Dir"]) / "schema" / "compose-spec.json").read_text())
