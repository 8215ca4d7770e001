"""An upgrade from one rendering to another: what the API server would refuse to change in place."""

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, cast

from scripts.chart.examples import Manifest

_CHANGEABLE = ("replicas", "template", "updateStrategy", "minReadySeconds", "ordinals",
               "persistentVolumeClaimRetentionPolicy", "revisionHistoryLimit")  # fmt: skip
"""Of the spec of a StatefulSet; all its other fields are fixed."""
FIXED = {
    "Deployment": ("spec.selector",),
    "Service": ("spec.clusterIP", "spec.clusterIPs", "spec.loadBalancerClass"),
    "PersistentVolumeClaim": ("spec.accessModes", "spec.storageClassName", "spec.volumeMode"),
    "PodDisruptionBudget": (),
    "Job": ("spec.selector", "spec.template", "spec.completionMode"),
    "ConfigMap": ("immutable",),
    "Secret": ("type", "immutable"),
    "StorageClass": ("parameters", "provisioner"),
}
"""By kind, the fields that keep what they were made with."""
KEPT = ("StatefulSet", "PersistentVolumeClaim")
"""Objects that hold data: another name or none is a loss."""


def problems(before: Sequence[Manifest], after: Sequence[Manifest]) -> list[str]:
    """Each fixed field that an upgrade changes, and each object with data that it takes away."""
    new = {_key(each): each for each in after if not _is_hook(each)}
    found: list[str] = []
    for old in before:
        name = "/".join(_key(old)[1:])
        if _is_hook(old):
            continue
        if _key(old) not in new:
            found += [f"{name}: taken away, with its data"] if old["kind"] in KEPT else []
            continue
        found += [f"{name}: {field}" for field in _changed(old, new[_key(old)])]
    return found


def _changed(old: Manifest, new: Manifest) -> Iterator[str]:
    fields = FIXED.get(old["kind"], ())
    if old["kind"] == "StatefulSet":
        fields = [
            f"spec.{each}" for each in {**old["spec"], **new["spec"]} if each not in _CHANGEABLE
        ]
    for field in fields:
        was, becomes = (_at(each, field) for each in (old, new))
        if was != becomes:
            yield f"{field} was {was}, becomes {becomes}"
    if old["kind"] in {"StatefulSet", "Deployment"}:
        selector: dict[str, str] = old["spec"]["selector"]["matchLabels"]
        labels = new["spec"]["template"]["metadata"]["labels"]
        if not selector.items() <= labels.items():
            yield f"spec.template.metadata.labels {labels} do not fit spec.selector {selector}"


def _at(manifest: Manifest, path: str) -> Any:
    def step(node: Any, key: str) -> Any:
        return cast("dict[str, Any]", node).get(key) if isinstance(node, dict) else None

    return reduce(step, path.split("."), cast("Any", manifest))


def _key(manifest: Manifest) -> tuple[str, str, str, str]:
    metadata = manifest["metadata"]
    group = manifest["apiVersion"].rpartition("/")[0]
    return group, manifest["kind"], metadata.get("namespace", ""), metadata["name"]


def _is_hook(manifest: Manifest) -> bool:
    return "helm.sh/hook" in manifest["metadata"].get("annotations", {})
