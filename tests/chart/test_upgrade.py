"""The check of upgrades sees what the API server would refuse, and only that."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from scripts.chart.examples import Manifest, names
from tests.chart import examples, upgrade
from tests.chart.support import SCALED, one, render

Change = Callable[[list[Manifest]], None]


def stateful(found: list[Manifest]) -> dict[str, Any]:
    return one(found, "StatefulSet")["spec"]


def change_claims(found: list[Manifest]) -> None:
    stateful(found)["volumeClaimTemplates"][0]["spec"]["resources"] = {
        "requests": {"storage": "9Gi"}
    }


def change_selector(found: list[Manifest]) -> None:
    one(found, "Deployment", "score")["spec"]["selector"]["matchLabels"]["tier"] = "scoring"


def change_labels(found: list[Manifest]) -> None:
    labels = one(found, "Deployment", "score")["spec"]["template"]["metadata"]["labels"]
    labels["app.kubernetes.io/instance"] = "other"


def change_address(found: list[Manifest]) -> None:
    one(found, "Service", "score-metrics")["spec"]["clusterIP"] = ""


def take_away(found: list[Manifest]) -> None:
    found.remove(one(found, "StatefulSet"))


def set_to(field: str, value: object) -> Change:
    def change(found: list[Manifest]) -> None:
        stateful(found)[field] = value

    return change


BROKEN: dict[str, tuple[Change, str]] = {
    "serviceName": (set_to("serviceName", "other"), "spec.serviceName was"),
    "podManagementPolicy": (
        set_to("podManagementPolicy", "OrderedReady"),
        "spec.podManagementPolicy was Parallel, becomes OrderedReady",
    ),
    "selector": (set_to("selector", {"matchLabels": {}}), "spec.selector was"),
    "no claims": (set_to("volumeClaimTemplates", None), "spec.volumeClaimTemplates was"),
    "size of claims": (change_claims, "spec.volumeClaimTemplates was"),
    "selector of a Deployment": (change_selector, "score: spec.selector was"),
    "labels of its pods": (change_labels, "do not fit spec.selector"),
    "clusterIP": (change_address, "spec.clusterIP was None, becomes"),
    "name of a StatefulSet": (take_away, "taken away, with its data"),
}


@pytest.mark.parametrize(("change", "problem"), BROKEN.values(), ids=BROKEN)
def test_a_field_that_kubernetes_keeps_is_reported(change: Change, problem: str) -> None:
    before = render(SCALED)
    after = deepcopy(before)
    change(after)

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


def test_every_example_was_rendered_by_the_first_version() -> None:
    assert {each.stem for each in examples.FIRST.glob("*.yaml")} <= set(names())
