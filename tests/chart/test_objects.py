"""Names, labels, annotations, services, the policy of the network and the scaling of every rendering."""

import pytest

from scripts.chart.examples import NAMESPACE, Manifest, manifests, names, rendered, values_of
from tests.chart.support import (
    MODES,
    SCALED,
    leaves,
    named,
    of_kind,
    one,
    pods,
    refusal,
    render,
    services,
)

LONGEST = "r" * 53
"""Helm takes no longer name of a release."""
ALL_ON = """
networkPolicy: {enabled: true}
prometheusRule: {enabled: true}
dashboard: {enabled: true, grafanaOperator: {enabled: true}}
podMonitor: {enabled: true}
commonAnnotations: {owner: agents}
commonLabels: {team: agents}
"""
JUDGED = "networkPolicy: {enabled: true}\nconfig: {judge: {model: openai/gpt-4o-mini}}\n"
CPU = "resources: {requests: {cpu: 1}}\n"
KEDA = SCALED + "scaled: {score: {autoscaling: {keda: {enabled: true, lagThreshold: 500}}}}\n"


def metadata(found: list[Manifest]) -> list[Manifest]:
    """The metadata of every object, and of the pods that the objects make."""
    made = [
        each["spec"]["template"]["metadata"] for each in found if "template" in each.get("spec", {})
    ]
    return [*(each["metadata"] for each in found), *made]


@pytest.mark.parametrize("example", names())
def test_names_and_labels_keep_to_63_characters_with_the_longest_release(example: str) -> None:
    found = manifests(rendered(values_of(example), release=LONGEST))

    assert [named(each) for each in found if len(each["metadata"]["name"]) > 63] == []
    objects = [each for each in found if each["kind"] != "PrometheusRule"]
    for path, value in (pair for each in objects for pair in leaves(each)):
        if ".labels." in path or ".matchLabels." in path:
            assert len(value) <= 63, path
    for name, pod in pods(found).items():
        assert max(len(each["name"]) for each in pod["volumes"]) <= 63, name
    for each in of_kind(found, "StatefulSet"):
        # The label controller-revision-hash is the name and eleven characters.
        assert len(each["metadata"]["name"]) <= 52


def test_two_long_releases_that_begin_alike_have_names_of_their_own() -> None:
    first, second = (render(release=LONGEST[:-1] + each) for each in "ab")

    assert not {named(each) for each in first} & {named(each) for each in second}


@pytest.mark.parametrize("mode", MODES)
def test_annotations_and_labels_of_all_stand_everywhere(mode: str) -> None:
    found = render(MODES[mode].replace("{}", "") + ALL_ON)

    assert len(found) > 5
    for each in metadata(found):
        assert each["annotations"]["owner"] == "agents"
        assert each["labels"]["team"] == "agents"
        assert each["labels"]["app.kubernetes.io/instance"] == "agents"


@pytest.mark.parametrize("mode", MODES)
def test_a_selector_holds_what_never_changes(mode: str) -> None:
    found = render(
        MODES[mode].replace("{}", "") + "commonLabels: {team: agents}\npodLabels: {tier: a}"
    )

    for each in found:
        if each["kind"] in {"Deployment", "StatefulSet"}:
            assert set(each["spec"]["selector"]["matchLabels"]) == {
                "app.kubernetes.io/name",
                "app.kubernetes.io/instance",
                "app.kubernetes.io/component",
            }


@pytest.mark.parametrize("mode", ["standalone", "scaled"])
def test_every_service_finds_pods_and_their_ports(mode: str) -> None:
    found = render(MODES[mode])
    made = [each for each in found if each["kind"] in {"Deployment", "StatefulSet"}]

    for service in of_kind(found, "Service"):
        behind = [
            each
            for each in made
            if service["spec"]["selector"].items()
            <= each["spec"]["template"]["metadata"]["labels"].items()
        ]
        assert len(behind) == 1, named(service)
        ports = {each["name"] for each in services(behind)[named(behind[0])]["ports"]}
        assert {each["targetPort"] for each in service["spec"]["ports"]} <= ports
    for each in of_kind(found, "StatefulSet"):
        assert one(found, "Service", each["spec"]["serviceName"])["spec"]["clusterIP"] == "None"


def test_an_object_of_the_user_is_taken_as_it_is_with_templates_filled_in() -> None:
    found = render(
        "extraManifests:\n"
        "  - {apiVersion: v1, kind: Secret, metadata: {name: '{{ .Release.Name }}-own'}}\n"
        "  - |\n"
        "    apiVersion: v1\n"
        "    kind: ConfigMap\n"
        "    metadata: {name: text}\n"
    )

    assert one(found, "Secret")["metadata"]["name"] == "agents-own"
    assert one(found, "ConfigMap", "text")


def test_the_namespace_can_be_another() -> None:
    found = render("namespaceOverride: elsewhere")

    assert {each["metadata"]["namespace"] for each in found} == {"elsewhere"}
    assert {each["metadata"]["namespace"] for each in render()} == {NAMESPACE}


# --- disruption and scaling ----------------------------------------------------------------------------------


def test_each_role_that_can_be_several_has_a_disruption_budget() -> None:
    budgets = of_kind(render(SCALED), "PodDisruptionBudget")

    assert {each["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"] for each in budgets} == {
        "receive", "assemble", "score", "judge",
    }  # fmt: skip
    assert all(each["spec"]["maxUnavailable"] == 1 for each in budgets)
    assert not of_kind(render(), "PodDisruptionBudget")


def test_publish_is_one_pod_with_its_own_volume() -> None:
    publish = one(render(SCALED), "StatefulSet")

    assert publish["metadata"]["name"].endswith("-publish")
    assert publish["spec"]["replicas"] == 1
    assert publish["spec"]["volumeClaimTemplates"]


def test_keda_reads_the_lag_of_the_group_that_the_role_reads_with() -> None:
    scaled = one(render(KEDA), "ScaledObject")["spec"]
    (trigger,) = scaled["triggers"]

    assert scaled["scaleTargetRef"]["name"] == "agents-spanwise-score"
    assert trigger["type"] == "kafka"
    assert trigger["metadata"] | {
        "bootstrapServers": "kafka:9092",
        "consumerGroup": "spanwise.scoring",
        "topic": "spanwise.traces",
        "lagThreshold": "500",
        "limitToPartitionsWithLag": "true",
        "excludePersistentLag": "false",
        "allowIdleConsumers": "false",
    } == trigger["metadata"]  # fmt: skip
    behavior = scaled["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    assert behavior["scaleDown"]["stabilizationWindowSeconds"] >= 300


def test_what_scales_itself_has_no_fixed_number() -> None:
    for text in (
        KEDA,
        KEDA.replace("keda: {enabled: true, lagThreshold: 500}", "hpa: {enabled: true}") + CPU,
    ):
        found = render(text)
        assert "replicas" not in one(found, "Deployment", "score")["spec"]
        assert one(found, "Deployment", "judge")["spec"]["replicas"] == 2


def test_keda_takes_the_password_of_kafka_from_its_secret() -> None:
    text = KEDA.replace(
        "'kafka:9092'", "'kafka:9092', security: {protocol: SASL_SSL, sasl_mechanism: PLAIN}"
    )
    found = render(
        text + "secrets: {kafka: {existingSecret: kafka}}\ntls: {kafka: {existingSecret: ca}}"
    )
    (trigger,) = one(found, "ScaledObject")["spec"]["triggers"]
    given = one(found, "TriggerAuthentication")

    assert trigger["authenticationRef"] == {"name": given["metadata"]["name"]}
    assert (trigger["metadata"]["sasl"], trigger["metadata"]["tls"]) == ("plaintext", "enable")
    assert {each["parameter"] for each in given["spec"]["secretTargetRef"]} == {
        "username",
        "password",
        "ca",
    }


# --- the network ---------------------------------------------------------------------------------------------


def test_the_policy_lets_out_what_is_needed_and_nothing_else() -> None:
    alone = one(render("networkPolicy: {enabled: true}"), "NetworkPolicy")["spec"]
    judged = one(render(JUDGED), "NetworkPolicy")["spec"]

    def ports(rules: list[Manifest]) -> list[int]:
        return sorted({port["port"] for rule in rules for port in rule["ports"]})

    assert alone["policyTypes"] == ["Ingress", "Egress"]
    assert ports(alone["ingress"]) == [4317, 4318, 4390]
    assert ports(alone["egress"]) == [53]
    assert ports(judged["egress"]) == [53, 443]


def test_the_policy_names_the_judge_by_address_and_ciliums_by_host() -> None:
    by_address = JUDGED.replace(
        "enabled: true", "enabled: true, egress: {judge: {to: [{ipBlock: {cidr: 203.0.113.0/24}}]}}"
    )
    by_host = JUDGED.replace(
        "enabled: true", "enabled: true, flavor: cilium, egress: {judge: {hosts: [api.openai.com]}}"
    )

    egress = one(render(by_address), "NetworkPolicy")["spec"]["egress"]
    assert egress[-1]["to"] == [{"ipBlock": {"cidr": "203.0.113.0/24"}}]
    egress = one(render(by_host), "CiliumNetworkPolicy")["spec"]["egress"]
    assert {"toFQDNs": [{"matchName": "api.openai.com"}]}.items() <= egress[-1].items()


ENDPOINTS = {
    "forward: {endpoint: 'http://tempo:4317'}": 4317,
    "forward: {endpoint: 'collector.obs:14317'}": 14317,
    "metrics: {otlp: {endpoint: 'http://otel:4318', protocol: http}}": 4318,
    "sinks: {otlp: {endpoint: 'http://otel:9317'}}": 9317,
    "sinks: {phoenix: {endpoint: 'http://phoenix.ai:6006/base'}}": 6006,
    "sinks: {mlflow: {endpoint: 'http://mlflow'}}": 80,
    "sinks: {langfuse: {public_key: '${env:A}', secret_key: '${env:B}'}}": 443,
    "sinks: {langsmith: {api_key: '${env:A}', project_id: 6f1c6f0e-0d53-4c3c-9f0e-0a4b7d1a2b3c}}": 443,
    "sinks: {datadog: {api_key: '${env:A}'}}": 443,
    "notify: {page: 'https://s.example.com', to: {ops: {slack: '${env:SLACK}'}}}": 443,
    "notify: {page: 'https://s.example.com', to: {ops: {pagerduty: '${env:KEY}'}}}": 443,
    "notify: {page: 'https://s.example.com', to: {am: {alertmanager: 'http://alertmanager:9093'}}}": 9093,
    "judge: {model: openai/x, base_url: 'http://vllm:8000/v1'}": 8000,
    "embedder: {kind: litellm, model: openai/x, base_url: 'http://tei:8080'}": 8080,
}


@pytest.mark.parametrize("flavor", ["kubernetes", "cilium"])
@pytest.mark.parametrize(("config", "port"), ENDPOINTS.items())
def test_the_policy_lets_out_to_every_endpoint_of_the_configuration(
    flavor: str, config: str, port: int
) -> None:
    """It was closed to all but the judge: signals and notices waited until they were lost."""
    policy = f"{{enabled: true, flavor: {flavor}, egress: {{judge: {{hosts: [api.example.com]}}}}}}"
    rendered = render(f"networkPolicy: {policy}\nconfig: {{{config}}}")

    if flavor == "kubernetes":
        rules = one(rendered, "NetworkPolicy")["spec"]["egress"]
        found = {each["port"] for rule in rules for each in rule["ports"]}
    else:
        rules = one(rendered, "CiliumNetworkPolicy")["spec"]["egress"]
        ports = [each for rule in rules for of in rule["toPorts"] for each in of["ports"]]
        found = {int(each["port"]) for each in ports}
    assert port in found


def test_the_policy_may_name_where_endpoints_are_and_loopback_needs_no_rule() -> None:
    peers = "endpoints: {to: [{namespaceSelector: {}}]}"
    forward = "config: {forward: {endpoint: 'http://tempo:4317'}}"
    named = render(f"networkPolicy: {{enabled: true, egress: {{{peers}}}}}\n{forward}")
    beside = render(
        "networkPolicy: {enabled: true}\nconfig: {sinks: {otlp: {endpoint: 'http://127.0.0.1:4317'}}}"
    )

    assert one(named, "NetworkPolicy")["spec"]["egress"][-1]["to"] == [{"namespaceSelector": {}}]
    assert len(one(beside, "NetworkPolicy")["spec"]["egress"]) == 1
    none = render(
        f"networkPolicy: {{enabled: true, egress: {{endpoints: {{enabled: false}}}}}}\n{forward}"
    )
    assert len(one(none, "NetworkPolicy")["spec"]["egress"]) == 1


def test_the_policy_lets_in_who_is_named() -> None:
    text = "networkPolicy: {enabled: true, ingress: {otlp: [{podSelector: {matchLabels: {agent: a}}}]}}"
    spans, page = one(render(text), "NetworkPolicy")["spec"]["ingress"]

    assert spans["from"][0] == {"podSelector": {"matchLabels": {"agent": "a"}}}
    assert "from" not in page


# --- sidecar -------------------------------------------------------------------------------------------------


def test_a_sidecar_starts_first_stops_last_and_listens_on_the_pod_alone() -> None:
    pod = next(iter(pods(render(MODES["sidecar"])).values()))
    (native,) = pod["initContainers"]
    variables = {each["name"]: each.get("value") for each in native["env"]}

    assert native["restartPolicy"] == "Always"
    assert variables["SPANWISE_RECEIVER__GRPC__HOST"] == "127.0.0.1"
    assert variables["SPANWISE_DRAIN_ON_STOP"] == "true"
    assert {each["name"].split("-")[0] for each in pod["volumes"]} == {"spanwise"}


def test_the_test_pod_asks_the_services_of_the_release() -> None:
    found = render()
    pod = one(found, "Pod", "test")
    addresses = {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}

    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    assert addresses["OTLP_URL"] == f"http://agents-spanwise.{NAMESPACE}.svc:4318"
    assert addresses["ADMIN_URL"] == f"http://agents-spanwise-admin.{NAMESPACE}.svc:4390"
    assert not [
        each for each in render("tests: {enabled: false}") if "test" in each["metadata"]["name"]
    ]


def test_the_names_of_a_user_stand_in_place_of_ours() -> None:
    assert one(render("fullnameOverride: scores"), "StatefulSet")["metadata"]["name"] == "scores"
    assert "/fullnameOverride" in refusal("fullnameOverride: Scores!")
