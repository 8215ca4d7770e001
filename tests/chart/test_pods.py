"""What every pod of the chart keeps to: security, probes and graces, secrets only by reference."""

from typing import Any

import pytest
import yaml

from scripts.chart.examples import names
from tests.chart.examples import objects
from tests.chart.support import (
    MODES,
    SCALED,
    SIDECAR,
    containers,
    of_kind,
    one,
    pods,
    render,
    secret_keys,
    services,
    spanwise,
    values,
)

EVERY_SECRET = """
config:
  log: {kafka: {bootstrap_servers: 'kafka:9092', security: {protocol: SASL_PLAINTEXT, sasl_mechanism: PLAIN}}}
  judge: {model: openai/gpt-4o-mini}
  embedder: {kind: litellm, model: openai/text-embedding-3-small}
  forward: {endpoint: 'https://traces.example.com:4317'}
  sinks: {otlp: {endpoint: 'https://signals.example.com:4317'}, kafka: {bootstrap_servers: 'kafka:9092'}}
secrets:
  receiverTokens: {existingSecret: s-receiver, keys: [one, two]}
  adminTokens: {existingSecret: s-admin}
  judgeApiKey: {existingSecret: s-judge}
  embedderApiKey: {existingSecret: s-embedder}
  kafka: {existingSecret: s-kafka}
  sinkKafka: {existingSecret: s-sink}
  sinkOtlpHeaders: {existingSecret: s-otlp, headers: {authorization: bearer}}
  forwardHeaders: {existingSecret: s-forward, headers: {authorization: bearer}}
  redactionKey: {existingSecret: s-redaction}
"""
RIGHTS = {
    "runAsNonRoot": True,
    "readOnlyRootFilesystem": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
SETTINGS = {"standalone": "", "scaled": "mode: scaled", "sidecar": SIDECAR}


def settings_of(text: str = "", name: str = "spanwise") -> dict[str, Any]:
    """The spec of the only pod whose maker's name ends so."""
    (pod,) = (spec for made_by, spec in pods(render(text)).items() if made_by.endswith(name))
    return pod


@pytest.mark.parametrize("example", names())
def test_every_container_of_ours_has_no_rights_to_lose(example: str) -> None:
    for pod in pods(objects(example)).values():
        shared = pod.get("securityContext", {})
        for each in containers(pod):
            if each["name"] not in {"spanwise", "send-and-read"}:
                continue
            security = shared | each["securityContext"]
            assert security["runAsUser"] >= 10000
            assert security.items() >= RIGHTS.items()
            assert not security.get("privileged")


@pytest.mark.parametrize("example", names())
def test_no_pod_has_a_token_of_the_api_server_nor_a_right(example: str) -> None:
    found = objects(example)

    assert not [each for each in found if "Role" in each["kind"]]
    for account in of_kind(found, "ServiceAccount"):
        assert account["automountServiceAccountToken"] is False
    for name, pod in pods(found).items():
        if not name.endswith("agent") and "ClusterPolicy" not in name:  # a user's own pod
            assert pod["automountServiceAccountToken"] is False
        assert not any(pod.get(each) for each in ("hostNetwork", "hostPID", "hostIPC"))
        assert not any("hostPath" in volume for volume in pod["volumes"])


@pytest.mark.parametrize("mode", MODES)
def test_probes_ask_the_right_paths(mode: str) -> None:
    expected = {"startupProbe": "/readyz", "readinessProbe": "/readyz", "livenessProbe": "/healthz"}
    if mode == "sidecar":  # the agent beside it must not wait for the scores
        expected = {"livenessProbe": "/healthz"}

    for container in services(render(MODES[mode])).values():
        probes = {name: probe for name, probe in container.items() if name.endswith("Probe")}
        assert {name: probe["httpGet"]["path"] for name, probe in probes.items()} == expected
        assert {probe["httpGet"]["port"] for probe in probes.values()} == {"admin"}


def test_graces_fit_what_the_service_takes_and_the_pods_group_can_write() -> None:
    pod = settings_of()
    start, live = (spanwise(pod)[each] for each in ("startupProbe", "livenessProbe"))
    wait = spanwise(pod)["lifecycle"]["preStop"]["sleep"]["seconds"]

    assert start["periodSeconds"] * start["failureThreshold"] >= 300
    assert live["periodSeconds"] * live["failureThreshold"] >= 60
    assert pod["terminationGracePeriodSeconds"] >= wait + 40
    assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsGroup"]
    assert {"/data", "/tmp"} <= {each["mountPath"] for each in spanwise(pod)["volumeMounts"]}


@pytest.mark.parametrize("mode", SETTINGS)
def test_a_secret_is_a_reference_and_only_in_pods_that_need_it(mode: str) -> None:
    found = render(EVERY_SECRET + SETTINGS[mode])

    used = {
        name.rpartition("-")[2]: {secret for secret, _ in secret_keys(container)}
        for name, container in services(found).items()
    }
    assert not of_kind(found, "Secret")
    if mode == "scaled":
        assert used == {
            "receive": {"s-receiver", "s-forward", "s-kafka", "s-redaction"},
            "assemble": {"s-kafka", "s-redaction"},
            "score": {"s-kafka", "s-redaction"},
            "judge": {"s-judge", "s-embedder", "s-kafka", "s-redaction"},
            "publish": {"s-admin", "s-otlp", "s-sink", "s-kafka", "s-redaction"},
        }
    else:
        assert [len(each) for each in used.values()] == [9]


def test_the_config_map_holds_the_settings_and_nothing_of_a_secret() -> None:
    held = one(render(EVERY_SECRET), "ConfigMap", "spanwise")["data"]

    assert list(held) == ["spanwise.yaml"]
    assert yaml.safe_load(held["spanwise.yaml"]) == {"workers": 2, **values(EVERY_SECRET)["config"]}


def test_every_place_for_something_of_the_user() -> None:
    of_pod = """
priorityClassName: high
nodeSelector: {disk: ssd}
tolerations: [{key: a, operator: Exists}]
"""
    pod = settings_of(
        of_pod
        + """
imagePullSecrets: [mirror]
extraEnv: [{name: A, value: b}]
extraEnvFrom: [{secretRef: {name: more}}]
extraVolumes: [{name: own, emptyDir: {}}]
extraVolumeMounts: [{name: own, mountPath: /own}]
extraContainers: [{name: beside, image: beside}]
extraInitContainers: [{name: before, image: before}]
lifecycle: {preStop: {exec: {command: [sleep, '1']}}}
"""
    )
    main = spanwise(pod)

    assert values(of_pod).items() <= pod.items()
    assert pod["imagePullSecrets"] == [{"name": "mirror"}]
    assert main["lifecycle"] == {"preStop": {"exec": {"command": ["sleep", "1"]}}}
    assert main["env"][-1] == {"name": "A", "value": "b"}
    assert main["envFrom"] == [{"secretRef": {"name": "more"}}]
    assert {"name": "own", "mountPath": "/own"} in main["volumeMounts"]
    assert {"name": "own", "emptyDir": {}} in pod["volumes"]
    assert [each["name"] for each in containers(pod)] == ["before", "spanwise", "beside"]


def test_pods_spread_over_nodes_and_an_override_changes_those_of_one_role() -> None:
    found = pods(
        render(
            SCALED + "nodeSelector: {a: b}\nscaled: {judge: {overrides: {nodeSelector: {c: d}}}}"
        )
    )

    selectors = {name.rpartition("-")[2]: pod["nodeSelector"] for name, pod in found.items()}
    assert selectors["score"] == {"a": "b"}
    assert selectors["judge"] == {"a": "b", "c": "d"}
    (score,) = (pod for name, pod in found.items() if name.endswith("-score"))
    (constraint,) = score["topologySpreadConstraints"]
    assert constraint["topologyKey"] == "kubernetes.io/hostname"
    assert constraint["labelSelector"]["matchLabels"]["app.kubernetes.io/component"] == "score"


def test_an_image_by_digest_and_registry() -> None:
    digest = "sha256:" + "0" * 64
    pod = settings_of(f"image: {{registry: mirror.example.com, digest: '{digest}'}}")

    assert spanwise(pod)["image"] == f"mirror.example.com/spanwise@{digest}"
