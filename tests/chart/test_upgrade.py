"""The check of upgrades sees what the API server would refuse, and only that."""

from copy import deepcopy
from functools import reduce
from typing import Any

import pytest

from tests.chart import upgrade
from tests.chart.support import SCALED, one, render

PUBLISH, SCORE = ("StatefulSet", "publish"), ("Deployment", "score")


@pytest.mark.parametrize(
    ("changed", "path", "value", "problem"),
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
