"""Autoscaling of the scaled form by what waits in Kafka; and values that fit no cluster."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from helm_python import HelmError

from collector.config.load import load
from collector.service.logs import groups
from scripts.chart.examples import manifests, rendered, values_of
from tests.chart.kubelet import one

KAFKA = {"log": {"kafka": {"bootstrap_servers": "kafka:9092"}}}
TRIGGERS = {
    each["metadata"]["name"]: each["spec"]["triggers"]
    for each in manifests(rendered(values_of("scaled-keda")))
    if each["kind"] == "ScaledObject"
}


def scaled(roles: Mapping[str, Any], **values: Any) -> dict[str, Any]:
    return {"mode": "scaled", "config": KAFKA, "scaled": roles, **values}


@pytest.mark.parametrize("role", ["score", "judge"])
def test_keda_asks_for_a_group_and_a_topic_that_the_service_has(role: str, tmp_path: Path) -> None:
    file = tmp_path / "spanwise.yaml"
    file.write_text("judge: {model: openai/gpt-4o-mini}\n")
    config = load([file], {}, [])
    kafka = config.log.kafka

    (trigger,) = TRIGGERS[f"agents-spanwise-{role}"]

    assert trigger["type"] == "kafka"
    asked = trigger["metadata"]
    topic = asked["topic"].removeprefix(kafka.topic_prefix)
    assert asked["consumerGroup"].removeprefix(f"{kafka.group}.") in groups(config)[topic]
    assert (asked["sasl"], asked["tls"]) == ("scram_sha512", "enable")
    assert trigger["authenticationRef"] == {"name": "agents-spanwise-kafka"}


def test_by_prometheus_it_asks_for_the_lag_of_the_role() -> None:
    (trigger,) = TRIGGERS["agents-spanwise-assemble"]

    assert trigger["metadata"]["query"] == (
        'sum(spanwise_log_lag_records{namespace="observability",group="assembly",topic="spans"})'
    )


def test_keda_signs_in_with_the_secret_of_the_service() -> None:
    found = manifests(rendered(values_of("scaled-keda")))

    asked = one(found, "TriggerAuthentication", "agents-spanwise-kafka")["spec"]["secretTargetRef"]

    assert {(each["parameter"], each["name"], each["key"]) for each in asked} == {
        ("username", "spanwise-kafka", "username"),
        ("password", "spanwise-kafka", "password"),
        ("ca", "kafka-ca", "ca.crt"),
    }


def test_what_is_scaled_has_no_number_of_replicas_of_its_own() -> None:
    found = manifests(rendered(values_of("scaled-keda")))

    counts = {
        each["metadata"]["labels"]["app.kubernetes.io/component"]: each["spec"].get("replicas")
        for each in found
        if each["kind"] in {"Deployment", "StatefulSet"}
    }

    assert counts == {"receive": 2, "assemble": None, "score": None, "judge": None, "publish": 1}


def test_a_group_with_two_roles_is_scaled_by_the_lag_of_both() -> None:
    roles = {
        "assemble": {"roles": ["assemble", "score"], "autoscaling": {"keda": {"enabled": True}}}
    }

    found = manifests(rendered(scaled({**roles, "score": {"enabled": False}})))

    triggers = one(found, "ScaledObject", "agents-spanwise-assemble")["spec"]["triggers"]
    assert [each["metadata"]["consumerGroup"] for each in triggers] == [
        "spanwise.assembly",
        "spanwise.scoring",
    ]


REFUSED: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "certificates without TLS": (
        scaled({}, tls={"kafka": {"existingSecret": "x"}}),
        "tls.kafka.existingSecret: needs config.log.kafka.security.protocol",
    ),
    "KEDA without a key for Kafka": (
        {
            "mode": "scaled",
            "config": {
                "log": {
                    "kafka": {
                        "bootstrap_servers": "kafka:9093",
                        "security": {"protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"},
                    }
                }
            },
            "scaled": {"score": {"autoscaling": {"keda": {"enabled": True}}}},
        },
        "scaled.score.autoscaling.keda: KEDA needs secrets.kafka.existingSecret",
    ),
    "a volume smaller than the log on it": (
        {"config": {"log": {"disk": {"max_size": "16GiB"}}}},
        "and sinks.jsonl (max_size x (keep + 1)) of config, which may take 18240 MiB together",
    ),
    "an emptyDir that would evict the user's pod": (
        {"mode": "sidecar", "sidecar": {"dataSizeLimit": "2Gi"}},
        "sidecar.dataSizeLimit: 2Gi is too small",
    ),
    "a page larger than its volume": (
        scaled({"publish": {"persistence": {"size": "1G"}}}),
        "scaled.publish.persistence.size: 1G is too small for serve.index",
    ),
    "a short grace in overrides": (
        {"standalone": {"overrides": {"preStopSeconds": 21}}},
        "terminationGracePeriodSeconds: 60 is less than preStopSeconds (21)",
    ),
    "a route to a page that no process has": (
        scaled(
            {"publish": {"enabled": False}},
            httpRoute={"enabled": True, "parentRefs": [{"name": "public"}]},
            secrets={"adminTokens": {"existingSecret": "admin"}},
        ),
        "scaled.publish.enabled: ingress and httpRoute lead to the page",
    ),
}
"""Beside those of test_refusals.py: what only templates can see."""


@pytest.mark.parametrize(
    "config",
    [
        {"log": {"disk": {"max_size": 8_400_000_000}}},  # bytes
        {"log": {"disk": {"max_size": "${env:LOG_SIZE}"}}},
        {"log": {"disk": {"max_size": "9GiB"}}, "sinks": {"jsonl": None}},
        {"log": {"disk": {"max_size": "8.5GiB"}}, "sinks": {"jsonl": {"keep": 0}}},
    ],
)
def test_a_volume_that_is_large_enough_is_taken(config: Mapping[str, Any]) -> None:
    assert rendered({"config": config})


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_work_is_refused_with_the_value_to_change(why: str) -> None:
    values, message = REFUSED[why]

    with pytest.raises(HelmError) as refused:
        rendered(values)

    assert message in str(refused.value)


@pytest.mark.parametrize("delay", ["15s", "14500ms", "0.25m", 15, None, "${env:DELAY:-1s}"])
def test_a_grace_that_holds_the_stop_and_its_delay_is_taken(delay: object) -> None:
    assert rendered({"config": {"receiver": {"stop_delay": delay}}})
