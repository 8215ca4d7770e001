"""Objects checked against the schemas of Kubernetes, unknown fields refused, and of the custom resources."""

import json
from functools import cache
from typing import cast

import kubernetes_validate
from kubernetes_validate import utils

from scripts.chart.examples import Manifest
from tests.chart import crds
from tests.chart.support import named

# The library reads and parses two megabytes of definitions for each object: once for each version is enough.
utils.schema_contents = cache(utils.schema_contents)


def problems(manifest: Manifest, version: str) -> list[str]:
    """What a Kubernetes of this version, or the CRD of the object's kind, would refuse."""
    return [f"{named(manifest)}: {each}" for each in _checked(json.dumps(manifest), version)]


@cache
def _checked(text: str, version: str) -> list[str]:
    manifest = cast("Manifest", json.loads(text))
    if crds.has(manifest["kind"]):
        found = crds.problem(manifest)
        return [] if found is None else [found]
    try:
        kubernetes_validate.validate(dict(manifest), version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return [f"{'.'.join(str(each) for each in error.path)}: {error.message}"]
    except kubernetes_validate.SchemaNotFoundError as error:
        return [error.message]
    return []
