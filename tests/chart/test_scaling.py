"""Autoscaling of the scaled form: by CPU, by what waits in Kafka; and what the values refuse."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from helm_python import HelmError

from collector.config.load import load
from collector.wiring.logs import groups
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
    "two pods on one disk": (
        {"standalone": {"replicas": 2}},
        "at '/standalone/replicas': value must be one of 0, 1",
    ),
    "two processes that publish": (
        scaled({"publish": {"replicas": 2}}),
        "at '/scaled/publish/replicas': value must be one of 0, 1",
    ),
    "publishing scaled by CPU": (
        scaled({"publish": {"autoscaling": {"hpa": {"enabled": True}}}}),
        "at '/scaled/publish': additional properties 'autoscaling' not allowed",
    ),
    "publishing among what is scaled": (
        scaled({"score": {"roles": ["score", "publish"]}}),
        "at '/scaled/score/roles/1': value must be one of",
    ),
    "two autoscalers": (
        scaled({"score": {"autoscaling": {"hpa": {"enabled": True}, "keda": {"enabled": True}}}}),
        "at '/scaled/score/autoscaling/keda/enabled': value must be false",
    ),
    "receivers scaled by what waits": (
        scaled({"receive": {"autoscaling": {"keda": {"enabled": True}}}}),
        "at '/scaled/receive/autoscaling': additional properties 'keda' not allowed",
    ),
    "several processes without Kafka": (
        {"mode": "scaled"},
        "at '/config': missing property 'log'",
    ),
    "one pod on Kafka": (
        {"config": {"log": {"kind": "kafka"}}},
        "at '/config/log/kind': value must be one of 'disk', 'memory'",
    ),
    "a key in plain text": (
        {"config": {"judge": {"api_key": "sk-1"}}},
        "at '/config/judge/api_key': 'sk-1' does not match pattern",
    ),
    "a setting that does not exist": (
        {"config": {"windows": {"trace": {"idel": "5m"}}}},
        "at '/config/windows/trace': additional properties 'idel' not allowed",
    ),
    "a setting of the chart's": (
        {"config": {"data_dir": "/data"}},
        "at '/config': additional properties 'data_dir' not allowed",
    ),
    "more replicas than partitions": (
        scaled({"score": {"replicas": 13}}),
        "scaled.score.replicas: 13 is more than config.log.kafka.partitions (12)",
    ),
    "more by KEDA than partitions": (
        scaled({"score": {"autoscaling": {"keda": {"enabled": True, "maxReplicaCount": 20}}}}),
        "scaled.score.autoscaling.keda.maxReplicaCount: 20 is more than",
    ),
    "by CPU without a request": (
        scaled({"receive": {"autoscaling": {"hpa": {"enabled": True}}}}),
        "scaled.receive.autoscaling.hpa: needs resources.requests.cpu",
    ),
    "password without SASL": (
        scaled({}, secrets={"kafka": {"existingSecret": "x"}}),
        "secrets.kafka.existingSecret: needs config.log.kafka.security.protocol",
    ),
    "certificates without TLS": (
        scaled({}, tls={"kafka": {"existingSecret": "x"}}),
        "tls.kafka.existingSecret: needs config.log.kafka.security.protocol",
    ),
    "headers without a backend": (
        {"secrets": {"forwardHeaders": {"existingSecret": "x", "headers": {"a": "b"}}}},
        "secrets.forwardHeaders: there is no config.forward",
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
    "a grace shorter than the stop": (
        {"preStopSeconds": 30},
        "terminationGracePeriodSeconds: 60 is less than preStopSeconds (30), config.receiver.stop_delay (1 s)",
    ),
    "a grace shorter than the stop with its delay": (
        {"config": {"receiver": {"stop_delay": "0.5m"}}},
        "terminationGracePeriodSeconds: 60 is less than preStopSeconds (5), config.receiver.stop_delay (30 s)",
    ),
    "the same in overrides": (
        {"standalone": {"overrides": {"preStopSeconds": 20}}},
        "terminationGracePeriodSeconds: 60 is less than preStopSeconds (20)",
    ),
    "a route to a page that no process has": (
        scaled(
            {"publish": {"enabled": False}},
            httpRoute={"enabled": True, "parentRefs": [{"name": "public"}]},
            secrets={"adminTokens": {"existingSecret": "admin"}},
        ),
        "scaled.publish.enabled: ingress and httpRoute lead to the page",
    ),
    "a page without a token": (
        {"ingress": {"enabled": True, "hosts": ["scores.example.com"]}},
        "secrets.adminTokens.existingSecret: required with ingress",
    ),
}


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
