"""Objects checked against the schemas of Kubernetes and of custom resources, unknown fields refused.

The shapes of custom resources are taken from the CRDs of the projects that define them.

`python -m tests.chart.crds FILE...` writes `tests/data/chart/crds/<kind>.json`: the OpenAPI schema of one
version of a CRD, without descriptions and without the status, and closed, so that an unknown field is refused.
Rules in CEL (`x-kubernetes-validations`) are left out.
"""

import json
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

import kubernetes_validate
import yaml
from jsonschema import Draft202012Validator
from kubernetes_validate import utils

from scripts.chart.examples import Manifest
from tests.chart.support import named

FOLDER = Path(__file__).parents[1] / "data" / "chart" / "crds"
_LEFT_OUT = ("description", "default", "format")
# The library reads and parses two megabytes of definitions for each object: once for each version is enough.
utils.schema_contents = cache(utils.schema_contents)


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
        elif key == "pattern" and isinstance(value, str):
            if "\\P" not in value:  # classes of Unicode, which Python does not have
                found[key] = value.replace("^(?i)", "(?i)^")  # Go takes flags anywhere
        elif key not in _LEFT_OUT and not key.startswith("x-kubernetes"):
            found[key] = closed(value)
    is_object = "type" in node  # else a branch of `anyOf`, beside other properties
    if is_object and "properties" in found and not node.get("x-kubernetes-preserve-unknown-fields"):
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
def _validator(kind: str) -> Any:
    # Any: the types of jsonschema are unknown to pyright in part.
    file = FOLDER / f"{kind.lower()}.json"
    return Draft202012Validator(json.loads(file.read_text())) if file.exists() else None


def has(kind: str) -> bool:
    """Whether there is a shape of this kind."""
    return _validator(kind) is not None


def problem(manifest: Mapping[str, Any]) -> str | None:
    """What is wrong with a custom resource; None when nothing is."""
    found = next(_validator(manifest["kind"]).iter_errors(manifest), None)
    if found is None:
        return None
    return f"{'.'.join(str(each) for each in found.absolute_path)}: {found.message}"


def problems(manifest: Manifest, version: str) -> list[str]:
    """What a Kubernetes of this version, or the CRD of the object's kind, would refuse."""
    return [f"{named(manifest)}: {each}" for each in _checked(json.dumps(manifest), version)]


@cache
def _checked(text: str, version: str) -> list[str]:
    manifest = cast("Manifest", json.loads(text))
    if has(manifest["kind"]):
        found = problem(manifest)
        return [] if found is None else [found]
    try:
        kubernetes_validate.validate(dict(manifest), version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return [f"{'.'.join(str(each) for each in error.path)}: {error.message}"]
    except kubernetes_validate.SchemaNotFoundError as error:
        return [error.message]
    return []


def main(files: list[str]) -> None:
    """Write the shape of each CRD in these files."""
    for file in files:
        for definition in yaml.safe_load_all(Path(file).read_text()):
            kind = definition["spec"]["names"]["kind"].lower()
            (FOLDER / f"{kind}.json").write_text(json.dumps(shape(definition), indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
