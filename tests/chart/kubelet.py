"""What the kubelet makes of a container of the chart: its environment, with secrets that the test invents."""

import re
from collections.abc import Mapping, Sequence

from scripts.chart.examples import Manifest


def one(found: Sequence[Manifest], kind: str, name: str) -> Manifest:
    """The object of that kind and name."""
    (manifest,) = (
        each for each in found if (each["kind"], each["metadata"]["name"]) == (kind, name)
    )
    return manifest


def pods(found: Sequence[Manifest]) -> dict[str, Manifest]:
    """The pods of Deployments and StatefulSets, by component."""
    return {
        each["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]: each["spec"][
            "template"
        ]
        for each in found
        if each["kind"] in {"Deployment", "StatefulSet"}
    }


def main_container(pod: Manifest) -> Manifest:
    """The one that runs Spanwise."""
    (container,) = (each for each in pod["spec"]["containers"] if each["name"] == "spanwise")
    return container


def secret_keys(container: Manifest) -> set[tuple[str, str]]:
    """Secret and key of everything in the environment that comes from one."""
    references = (
        each["valueFrom"]["secretKeyRef"] for each in container["env"] if "valueFrom" in each
    )
    return {(each["name"], each["key"]) for each in references}


def environment(container: Manifest, secrets: Mapping[tuple[str, str], str]) -> dict[str, str]:
    """Its variables. `$(NAME)` stands for a variable further up, as in Kubernetes; an unknown one stays."""
    values: dict[str, str] = {}
    for each in container["env"]:
        if "valueFrom" in each:
            reference = each["valueFrom"]["secretKeyRef"]
            values[each["name"]] = secrets[reference["name"], reference["key"]]
            continue
        values[each["name"]] = re.sub(
            r"\$\((\w+)\)", lambda found: values.get(found[1], found[0]), each["value"]
        )
    return values
