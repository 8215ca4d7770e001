"""Every example passes every check, as `make chart` prints it; that of upgrades sees what an API server refuses."""

from collections.abc import Callable
from copy import deepcopy
from functools import reduce
from typing import Any

import pytest
import yaml

from scripts.chart.examples import names
from scripts.chart.files import files
from scripts.chart.places import EXAMPLES, HELM
from tests.chart import examples, upgrade
from tests.chart.examples import CHECKS, Found
from tests.chart.support import SCALED, one, render
from tests.support.promtool import promtool
from tests.support.table import for_each


@pytest.mark.parametrize("example", names())
@pytest.mark.parametrize("check", CHECKS.values(), ids=list(CHECKS))
def test_example(example: str, check: Callable[[str], Found]) -> None:
    if check is examples.rules:
        promtool()

    assert not check(example).problems


def test_the_defaults_are_an_example() -> None:
    assert yaml.safe_load((EXAMPLES / "default" / "values.yaml").read_text()) == {}


@pytest.mark.parametrize("path", files())
def test_generated_file_is_what_its_source_says(path: str) -> None:
    assert (HELM / path).read_text(encoding="utf-8") == files()[path], examples.REWRITE


def test_every_example_was_rendered_by_the_first_version() -> None:
    assert {each.stem for each in examples.FIRST.glob("*.yaml")} <= set(names())


PUBLISH, SCORE = ("StatefulSet", "publish"), ("Deployment", "score")


@for_each(
    "changed,path,value,problem",
    [
        (PUBLISH, "spec.serviceName", "other", "publish: spec.serviceName was"),
        (PUBLISH, "spec.selector", {"matchLabels": {}}, "publish: spec.selector was"),
        (PUBLISH, "spec.volumeClaimTemplates", None, "publish: spec.volumeClaimTemplates was"),
        (PUBLISH, "metadata.name", "other", "taken away, with its data"),
        (SCORE, "spec.selector", {"matchLabels": {}}, "score: spec.selector was"),
        (SCORE, "spec.template.metadata.labels", {}, "do not fit spec.selector"),
        (("Service", "score-metrics"), "spec.clusterIP", "", "spec.clusterIP was None, becomes"),
    ],
)
def test_a_field_that_kubernetes_keeps_is_reported(
    changed: tuple[str, str], path: str, value: Any, problem: str
) -> None:
    before = render(SCALED)
    after = deepcopy(before)
    *above, field = path.split(".")
    parent: Any = reduce(lambda node, key: node[key], above, one(after, *changed))
    parent[field] = value

    assert problem in "\n".join(upgrade.problems(before, after))


def test_what_may_change_is_silent() -> None:
    before = render(SCALED)
    after = render(
        SCALED + "image: {tag: 0.2.0}\n"
        "commonLabels: {team: agents}\n"
        "podLabels: {tier: scoring}\n"
        "terminationGracePeriodSeconds: 90\n"
        "scaled: {score: {replicas: 4}, publish: {persistence: {retentionPolicy: {whenScaled: Delete}}}}\n"
        "service: {otlp: {type: LoadBalancer}}"
    )

    assert before != after
    assert not upgrade.problems(before, after)
