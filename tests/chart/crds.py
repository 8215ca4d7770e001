"""Shapes of the custom resources that the chart can render, taken from the CRDs of the projects that define them.

`python -m tests.chart.crds FILE...` writes `tests/data/chart/crds/<kind>.json`: the OpenAPI schema of one
version of a CRD, without descriptions and without the status, and closed, so that an unknown field is refused.
Rules in CEL (`x-kubernetes-validations`) are left out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

import jsonschema
import yaml

FOLDER = Path(__file__).parents[1] / "data" / "chart" / "crds"
_LEFT_OUT = ("description", "default", "format")


def closed(schema: Any) -> Any:
    """A schema that refuses fields it does not name, except below `x-kubernetes-preserve-unknown-fields`."""
    if isinstance(schema, list):
        return [closed(each) for each in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    node = cast("dict[str, Any]", schema)
    if node.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    found: dict[str, Any] = {}
    for key, value in node.items():
        if key == "properties":
            found[key] = {name: closed(each) for name, each in value.items()}
        elif key not in _LEFT_OUT and not key.startswith("x-kubernetes"):
            found[key] = closed(value)
    if "properties" in found and not node.get("x-kubernetes-preserve-unknown-fields"):
        found.setdefault("additionalProperties", False)
    return found


def shape(definition: Mapping[str, Any]) -> dict[str, Any]:
    """The closed schema of a CRD's first served version, its `apiVersion` and `kind` as constants."""
    spec = definition["spec"]
    version = next(each for each in spec["versions"] if each["served"])
    schema = closed(version["schema"]["openAPIV3Schema"])
    schema["properties"].pop("status", None)
    schema["properties"] |= {
        "apiVersion": {"const": f"{spec['group']}/{version['name']}"},
        "kind": {"const": spec["names"]["kind"]},
    }
    schema["required"] = ["apiVersion", "kind", "metadata", "spec"]
    return schema


@cache
def _shape_of(kind: str) -> dict[str, Any] | None:
    file = FOLDER / f"{kind.lower()}.json"
    return json.loads(file.read_text()) if file.exists() else None


def problem(manifest: Mapping[str, Any]) -> str | None:
    """What is wrong with a custom resource; None when nothing is. A kind without a shape is wrong."""
    schema = _shape_of(manifest["kind"])
    if schema is None:
        return f"no shape of the kind {manifest['kind']} in {FOLDER}"
    try:
        jsonschema.validate(manifest, schema)
    except jsonschema.ValidationError as found:
        return f"{'.'.join(str(each) for each in found.absolute_path)}: {found.message}"
    return None


def main(files: list[str]) -> None:
    """Write the shape of each CRD in these files."""
    for file in files:
        for definition in yaml.safe_load_all(Path(file).read_text()):
            kind = definition["spec"]["names"]["kind"].lower()
            (FOLDER / f"{kind}.json").write_text(json.dumps(shape(definition), indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
