"""Autoscaling of the scaled form by what waits in Kafka and disruption budgets."""

import pytest

from collector.config.tree import Config
from collector.service.logs import groups
from tests.chart.examples import objects
from tests.chart.support import SCALED, of_kind, one, render

KEDA = SCALED + "scaled: {score: {autoscaling: {keda: {enabled: true, lagThreshold: 500}}}}\n"
CPU = "resources: {requests: {cpu: 1}}\n"


@pytest.mark.parametrize(("role", "group"), [("score", "scoring"), ("judge", "judging")])
def test_keda_reads_the_lag_of_a_group_that_the_service_has(role: str, group: str) -> None:
    judged = Config.model_validate({"judge": {"model": "openai/gpt-4o-mini"}})

    scaled = one(objects("scaled-keda"), "ScaledObject", role)["spec"]

    (trigger,) = scaled["triggers"]
    assert group in groups(judged)["traces"]
    assert scaled["scaleTargetRef"]["name"] == f"agents-spanwise-{role}"
    assert trigger["type"] == "kafka"
    assert trigger["metadata"] | {
        "bootstrapServers": "kafka.kafka:9093",
        "consumerGroup": f"spanwise.{group}",
        "topic": "spanwise.traces",
        "limitToPartitionsWithLag": "true",
        "excludePersistentLag": "false",
        "allowIdleConsumers": "false",
    } == trigger["metadata"]  # fmt: skip
    assert trigger["authenticationRef"] == {"name": "agents-spanwise-kafka"}
    behavior = scaled["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    assert behavior["scaleDown"]["stabilizationWindowSeconds"] >= 300


def test_by_prometheus_it_asks_for_the_lag_of_the_role() -> None:
    (trigger,) = one(objects("scaled-keda"), "ScaledObject", "assemble")["spec"]["triggers"]

    assert trigger["metadata"]["query"] == (
        'sum(spanwise_log_lag_records{namespace="observability",group="assembly",topic="spans"})'
    )


@pytest.mark.parametrize(
    ("mechanism", "sasl"), [("PLAIN", "plaintext"), ("SCRAM-SHA-512", "scram_sha512")]
)
def test_keda_signs_in_with_the_secret_of_the_service(mechanism: str, sasl: str) -> None:
    security = f"security: {{protocol: SASL_SSL, sasl_mechanism: {mechanism}}}"
    found = render(
        KEDA.replace("'kafka:9092'", f"'kafka:9092', {security}")
        + "secrets: {kafka: {existingSecret: spanwise-kafka}}\ntls: {kafka: {existingSecret: kafka-ca}}"
    )

    (trigger,) = one(found, "ScaledObject")["spec"]["triggers"]
    given = one(found, "TriggerAuthentication")
    assert trigger["authenticationRef"] == {"name": given["metadata"]["name"]}
    assert (trigger["metadata"]["sasl"], trigger["metadata"]["tls"]) == (sasl, "enable")
    assert trigger["metadata"]["lagThreshold"] == "500"
    assert {
        (each["parameter"], each["name"], each["key"]) for each in given["spec"]["secretTargetRef"]
    } == {
        ("username", "spanwise-kafka", "username"),
        ("password", "spanwise-kafka", "password"),
        ("ca", "kafka-ca", "ca.crt"),
    }


@pytest.mark.parametrize(
    "text", [KEDA, SCALED + CPU + "scaled: {score: {autoscaling: {hpa: {enabled: true}}}}"]
)
def test_only_what_scales_itself_has_no_fixed_number(text: str) -> None:
    found = render(text)

    assert {
        each["metadata"]["labels"]["app.kubernetes.io/component"]: each["spec"].get("replicas")
        for each in (*of_kind(found, "Deployment"), *of_kind(found, "StatefulSet"))
    } == {"receive": 2, "assemble": 2, "score": None, "judge": 2, "publish": 1}


def test_a_group_with_two_roles_is_scaled_by_the_lag_of_both() -> None:
    both = "{roles: [assemble, score], autoscaling: {keda: {enabled: true}}}"

    found = render(SCALED + f"scaled: {{assemble: {both}, score: {{enabled: false}}}}")

    triggers = one(found, "ScaledObject", "assemble")["spec"]["triggers"]
    assert [each["metadata"]["consumerGroup"] for each in triggers] == [
        "spanwise.assembly",
        "spanwise.scoring",
    ]


def test_each_role_that_can_be_several_has_a_disruption_budget_and_publish_a_volume() -> None:
    found = render(SCALED)
    budgets = of_kind(found, "PodDisruptionBudget")

    assert {each["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"] for each in budgets} == {
        "receive", "assemble", "score", "judge",
    }  # fmt: skip
    assert all(each["spec"]["maxUnavailable"] == 1 for each in budgets)
    assert not of_kind(render(), "PodDisruptionBudget")
    assert one(found, "StatefulSet", "-publish")["spec"]["volumeClaimTemplates"]
