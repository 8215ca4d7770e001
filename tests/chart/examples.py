"""What is checked of each example: every check says what is wrong, and in a word what it looked at."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import helm_python
import yaml

from collector.slo.alerts import ALERTS
from scripts.chart.examples import Manifest, manifests, rendered, renderings, values_of
from scripts.chart.places import CHART, EXAMPLES, HELM
from tests.chart import configuration, crds, upgrade
from tests.chart.support import VERSIONS, of_kind, services
from tests.support.promtool import run

FIRST = Path(__file__).parents[1] / "data" / "chart" / "0.1.0"
"""Every example as the first version rendered it."""
REWRITE = "`python -m scripts.chart` writes it again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a check found."""

    looked_at: str
    problems: list[str] = field(default_factory=list[str])


def golden(example: str) -> Found:
    """The committed rendering is what Helm renders."""
    mine = {path: text for path, text in _golden().items() if path.split("/")[-2] == example}
    stale = [
        f"{path} is stale: {REWRITE}"
        for path, text in mine.items()
        if not (HELM / path).exists() or (HELM / path).read_text(encoding="utf-8") != text
    ]
    return Found(looked_at=str(len(mine)), problems=stale)


def lint(example: str) -> Found:
    """Helm's own linter has nothing to say, warnings included."""
    report = helm_python.lint(
        CHART, values_of(example), strict=True, kube_version=f"v{VERSIONS[0]}.0"
    )
    said = [
        f"{each['path']}: {each['error']}"
        for each in report["messages"]
        if each["error"] != "icon is recommended"
    ]
    return Found(looked_at="", problems=said)


def kubernetes(version: str) -> Callable[[str], Found]:
    """The objects of Kubernetes itself are accepted by a version."""

    def check(example: str) -> Found:
        own = [each for each in objects(example) if not crds.has(each["kind"])]
        return Found(
            looked_at=str(len(own)),
            problems=[each for manifest in own for each in crds.problems(manifest, version)],
        )

    return check


def custom_resources(example: str) -> Found:
    """The objects of other projects fit their CRDs."""
    theirs = [each for each in objects(example) if crds.has(each["kind"])]
    wrong = [each for manifest in theirs for each in crds.problems(manifest, VERSIONS[-1])]
    return Found(looked_at=str(len(theirs) or "-"), problems=wrong)


def rules(example: str) -> Found:
    """Promtool accepts the rules, and every alert is one of ours or of the values."""
    found = of_kind(objects(example), "PrometheusRule")
    if not found:
        return Found(looked_at="-")
    groups = found[0]["spec"]["groups"]
    with TemporaryDirectory() as folder:
        (Path(folder) / "rules.yml").write_text(yaml.safe_dump({"groups": groups}))
        done = run("check", "rules", "rules.yml", folder=Path(folder))
    own = {each.name for each in ALERTS}
    alerts = {each["alert"] for group in groups for each in group["rules"] if "alert" in each}
    return Found(
        looked_at=str(len(alerts & own)),
        problems=[] if done.returncode == 0 else [done.stdout + done.stderr],
    )


def settings(example: str) -> Found:
    """`spanwise validate` accepts the file and the environment of every container."""
    found = objects(example)
    with TemporaryDirectory() as folder:
        wrong = configuration.problems(found, Path(folder))
    return Found(looked_at=str(len(services(found))), problems=wrong)


def upgraded(example: str) -> Found:
    """An upgrade from the first version changes no field that Kubernetes keeps as it was made."""
    first = FIRST / f"{example}.yaml"
    if not first.exists():
        return Found(looked_at="-")
    before: list[Manifest] = [
        each for each in yaml.load_all(first.read_text(), yaml.CSafeLoader) if each
    ]
    return Found(looked_at=str(len(before)), problems=upgrade.problems(before, objects(example)))


CHECKS: Mapping[str, Callable[[str], Found]] = {
    "golden": golden,
    "lint": lint,
    **{version: kubernetes(version) for version in VERSIONS},
    "CRDs": custom_resources,
    "rules": rules,
    "settings": settings,
    "upgrade": upgraded,
}


@cache
def objects(example: str) -> list[Manifest]:
    """The objects of an example, and the pods beside it that a user may paste from."""
    beside = [
        EXAMPLES / example / f"{name}.yaml" for name in ("native-sidecar", "second-container")
    ]
    return [
        *manifests(rendered(values_of(example))),
        *(yaml.load(each.read_text(), yaml.CSafeLoader) for each in beside if each.exists()),
    ]


@cache
def _golden() -> dict[str, str]:
    return renderings()
