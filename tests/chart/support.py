"""The chart rendered for a test: values in YAML, objects by kind, pods and the environment of their containers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import yaml
from helm_python import HelmError

from scripts.chart.examples import NAMESPACE, RELEASE, Manifest, manifests, rendered

DATA = Path(__file__).parents[1] / "data" / "chart"
VERSIONS = ("1.30", "1.33", "1.37")
"""Kubernetes: the first that `kubeVersion` of the chart allows, one between, the newest."""
KAFKA = "config: {log: {kafka: {bootstrap_servers: 'kafka:9092'}}}\n"
SCALED = "mode: scaled\n" + KAFKA
SIDECAR = "mode: sidecar\nsidecar: {kyverno: {enabled: true}}\n"
MODES = {"standalone": "", "scaled": SCALED, "sidecar": SIDECAR}


def values(text: str) -> dict[str, Any]:
    """Values written in YAML."""
    return yaml.safe_load(text) or {}


def render(text: str = "", *, release: str = RELEASE, namespace: str = NAMESPACE) -> list[Manifest]:
    """The objects that these values render.

    Raises:
        HelmError: The values are refused, or a template fails.
    """
    return manifests(rendered(values(text), release=release, namespace=namespace))


def refusal(text: str) -> str:
    """What a user reads whose values are refused; empty when they are not."""
    try:
        render(text)
    except HelmError as error:
        return str(error)
    return ""


def of_kind(found: Sequence[Manifest], kind: str) -> list[Manifest]:
    """The objects of a kind."""
    return [each for each in found if each["kind"] == kind]


def one(found: Sequence[Manifest], kind: str, name: str = "") -> Manifest:
    """The only object of a kind whose name ends so."""
    (only,) = (each for each in of_kind(found, kind) if each["metadata"]["name"].endswith(name))
    return only


def named(manifest: Manifest) -> str:
    """Kind and name, for a message."""
    return f"{manifest['kind']}/{manifest['metadata']['name']}"


def pods(found: Sequence[Manifest]) -> dict[str, dict[str, Any]]:
    """Every pod's spec, by the object that makes it; of a Kyverno policy the part that it puts into a user's pod."""
    specs: dict[str, dict[str, Any]] = {}
    for each in found:
        spec = each.get("spec", {})
        if each["kind"] == "Pod":
            specs[named(each)] = spec
        elif each["kind"] in {"Deployment", "StatefulSet"}:
            specs[named(each)] = spec["template"]["spec"]
        elif each["kind"] == "ClusterPolicy":
            specs[named(each)] = spec["rules"][0]["mutate"]["patchStrategicMerge"]["spec"]
    return specs


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    """All containers of a pod."""
    return [*pod.get("initContainers", ()), *pod.get("containers", ())]


def spanwise(pod: dict[str, Any]) -> dict[str, Any]:
    """The container that runs the service."""
    (main,) = (each for each in containers(pod) if each["name"] == "spanwise")
    return main


def services(found: Sequence[Manifest]) -> dict[str, dict[str, Any]]:
    """The container that runs the service in each pod that has one, by the object that makes the pod."""
    return {
        name: spanwise(pod)
        for name, pod in pods(found).items()
        if any(each["name"] == "spanwise" for each in containers(pod))
    }


def secret_keys(container: Manifest) -> set[tuple[str, str]]:
    """Secret and key of everything in the environment that comes from one."""
    references = (
        each["valueFrom"]["secretKeyRef"] for each in container["env"] if "valueFrom" in each
    )
    return {(each["name"], each["key"]) for each in references}


def environment(container: Manifest, secrets: Mapping[tuple[str, str], str]) -> dict[str, str]:
    """The variables of a container. `$(NAME)` is a variable further up, as in Kubernetes; an unknown one stays."""
    found: dict[str, str] = {}
    for each in container["env"]:
        if "valueFrom" in each:
            reference = each["valueFrom"]["secretKeyRef"]
            found[each["name"]] = secrets[reference["name"], reference["key"]]
        else:
            found[each["name"]] = re.sub(
                r"\$\((\w+)\)", lambda name: found.get(name[1], name[0]), each["value"]
            )
    return found


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every scalar below a node, with its path."""
    if isinstance(node, dict):
        for key, value in cast("dict[str, Any]", node).items():
            yield from leaves(value, f"{path}.{key}")
    elif isinstance(node, list):
        for at, value in enumerate(cast("list[Any]", node)):
            yield from leaves(value, f"{path}.{at}")
    else:
        yield path, node
