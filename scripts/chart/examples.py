"""The examples of the chart as Helm renders them, and the pods with a sidecar."""

from collections.abc import Mapping
from typing import Any, cast

import yaml
from helm_python import Chart

from scripts.chart.places import CHART, EXAMPLES

RELEASE, NAMESPACE = "agents", "observability"
NOTES = "spanwise/templates/NOTES.txt"
Values = Mapping[str, Any]
Manifest = Mapping[str, Any]


def names() -> list[str]:
    """Every example."""
    return sorted(path.parent.name for path in EXAMPLES.glob("*/values.yaml"))


def values_of(name: str) -> dict[str, Any]:
    """The values of one example."""
    return yaml.safe_load((EXAMPLES / name / "values.yaml").read_text(encoding="utf-8")) or {}


def rendered(
    values: Values, *, release: str = RELEASE, namespace: str = NAMESPACE
) -> dict[str, str]:
    """What Helm renders, by template; templates that render nothing are left out.

    Raises:
        HelmError: The values are refused, or a template fails.
    """
    with Chart.load(CHART) as chart:
        found = chart.render(dict(values), name=release, namespace=namespace)
    return {name: text for name, text in sorted(found.items()) if text.strip()}


def manifests(found: Mapping[str, str]) -> list[Manifest]:
    """The objects of a rendering."""
    return [
        cast(Manifest, each)
        for name, text in found.items()
        if name != NOTES
        for each in yaml.load_all(text, yaml.CSafeLoader)  # ten times as fast as in Python
        if each
    ]


def renderings() -> dict[str, str]:
    """The golden files of all examples, by their path below helm/."""
    golden: dict[str, str] = {}
    for name in names():
        found = rendered(values_of(name))
        parts = [
            f"# Source: {each}\n{text.strip()}\n" for each, text in found.items() if each != NOTES
        ]
        golden[f"spanwise/examples/{name}/rendered.yaml"] = "---\n".join(parts)
        golden[f"spanwise/examples/{name}/NOTES.txt"] = found[NOTES]
    return golden | pods()


# --- pods with a sidecar ---------------------------------------------------------------------------------------------

_HEADS = {
    "native-sidecar": "# A pod of yours with Spanwise as a native sidecar: it starts first and stops last.\n",
    "second-container": "# A pod with Spanwise as a second container: it takes spans for 10 s after SIGTERM.\n",
}

_LAST_SPANS = {"name": "SPANWISE_RECEIVER__STOP_DELAY", "value": "10s"}
"""A second container is stopped together with the agent, which sends its last spans then; a native sidecar after it."""


def pods() -> dict[str, str]:
    """A user's pod with the container, in two ways, from what the Kyverno policy of the example injects."""
    injecting = {"sidecar": {"kyverno": {"enabled": True}}}
    (policy,) = (
        each
        for each in manifests(rendered(values_of("sidecar") | _merged(injecting)))
        if each["kind"] == "ClusterPolicy"
    )
    patch = policy["spec"]["rules"][0]["mutate"]["patchStrategicMerge"]["spec"]
    (native,) = patch["initContainers"]
    plain = {key: value for key, value in native.items() if key != "restartPolicy"}
    plain["env"] = [*native["env"], _LAST_SPANS]
    agent = {
        "name": "agent",
        "image": "your-agent:1.0",
        "env": [
            {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://127.0.0.1:4317"},
            {"name": "OTEL_EXPORTER_OTLP_PROTOCOL", "value": "grpc"},  # on 4318: http/protobuf
        ],
    }
    specs: dict[str, dict[str, Any]] = {
        "native-sidecar": {"initContainers": [native], "containers": [agent]},
        "second-container": {"containers": [agent, plain]},
    }
    return {
        f"spanwise/examples/sidecar/{name}.yaml": _HEADS[name]
        + yaml.safe_dump(_pod({**spec, "volumes": patch["volumes"]}), sort_keys=False, width=120)
        for name, spec in specs.items()
    }


def _merged(over: Mapping[str, Any]) -> dict[str, Any]:
    own = values_of("sidecar")["sidecar"]
    return {"sidecar": {**own, **over["sidecar"]}}


def _pod(spec: Mapping[str, Any]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "agent",
            "namespace": NAMESPACE,
            "labels": {"app": "agent", "spanwise-inject": "enabled"},
        },
        "spec": {"terminationGracePeriodSeconds": 60, **spec},
    }
