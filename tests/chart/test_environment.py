"""What the chart sets reaches Spanwise: file and environment of every container load, and say what the values say."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from collector.config.load import load
from collector.config.tree import Config
from scripts.chart.examples import Manifest, manifests, names, rendered, values_of
from tests.chart.kubelet import environment, main_container, one, pods, secret_keys

MOUNTED = "/etc/spanwise/"


def loaded(found: list[Manifest], container: Manifest, folder: Path) -> Config:
    """The configuration of a container: its mounted files stand in `folder`."""
    (mount,) = (m for m in container["volumeMounts"] if m.get("subPath") == "spanwise.yaml")
    assert container["args"] == ["run", "--config", mount["mountPath"]]
    maps = [each for each in found if each["kind"] == "ConfigMap"]
    (text,) = (each["data"]["spanwise.yaml"] for each in maps if "spanwise.yaml" in each["data"])
    secrets = {(name, key): f"0{name}.{key}" for name, key in secret_keys(container)}
    here = {
        name: value.replace(MOUNTED, f"{folder}/")
        for name, value in environment(container, secrets).items()
    }
    file = folder / "spanwise.yaml"
    file.write_text(text.replace(MOUNTED, f"{folder}/"), encoding="utf-8")
    for path in ("tls/receiver", "tls/kafka", "tls/sink-kafka", "expectations"):
        (folder / path).mkdir(parents=True)
        for name in ("tls.crt", "tls.key", "ca.crt", "expected.yaml"):
            (folder / path / name).touch()
    return load([file], here, [])


def example(name: str, **more: Any) -> list[Manifest]:
    return manifests(rendered({**values_of(name), **more}))


CONTAINERS = [
    (name, component)
    for name in names()
    if values_of(name).get("mode") != "sidecar"
    for component in pods(example(name))
]


@pytest.mark.parametrize(("name", "component"), CONTAINERS)
def test_every_container_loads_with_the_roles_and_ports_of_its_pod(
    name: str, component: str, tmp_path: Path
) -> None:
    found = example(name)
    container = main_container(pods(found)[component])

    config = loaded(found, container, tmp_path)

    scaled = values_of(name).get("scaled", {}).get(component, {})
    every = ["receive", "assemble", "score", "judge", "publish"]
    assert config.roles == tuple(
        scaled.get("roles", every if name_is_one_pod(name) else [component])
    )
    assert config.log.kind == ("disk" if name_is_one_pod(name) else "kafka")
    assert config.admin.host == config.receiver.grpc.host == config.receiver.http.host == "0.0.0.0"
    assert str(config.data_dir).startswith("/data/")
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports["admin"] == config.admin.port
    assert ("otlp-grpc" in ports) == ("receive" in config.roles)


def name_is_one_pod(name: str) -> bool:
    return values_of(name).get("mode", "standalone") == "standalone"


def test_keys_tokens_and_headers_arrive_as_they_stand_in_the_secrets(tmp_path: Path) -> None:
    found = example("locked-down")

    config = loaded(found, main_container(pods(found)["standalone"]), tmp_path)

    assert [each.get_secret_value() for each in config.receiver.bearer_tokens] == [
        "0spanwise-receiver.current",
        "0spanwise-receiver.previous",
    ]
    assert [each.get_secret_value() for each in config.admin.bearer_tokens] == [
        "0spanwise-admin.token"
    ]
    assert config.judge.api_key is not None
    assert config.judge.api_key.get_secret_value() == "0openai.api-key"
    assert config.redaction.key is not None
    assert config.redaction.key.get_secret_value() == "0redaction.redaction-key"
    assert config.forward is not None
    assert {name: each.get_secret_value() for name, each in config.forward.headers.items()} == {
        "authorization": "0traces.bearer",
        "x-scope": "0traces.tenant",
    }
    assert config.sinks.kafka is not None
    assert config.sinks.kafka.security.username == "0signals-kafka.username"
    assert config.receiver.tls is not None
    assert config.receiver.tls.client_ca_file == tmp_path / "tls/receiver/ca.crt"


def test_a_sidecar_listens_on_loopback_and_scores_at_the_stop(tmp_path: Path) -> None:
    found = example("sidecar-kyverno")
    (policy,) = (each for each in found if each["kind"] == "ClusterPolicy")
    patch = policy["spec"]["rules"][0]["mutate"]["patchStrategicMerge"]["spec"]
    (container,) = patch["initContainers"]

    config = loaded(found, container, tmp_path)

    assert config.drain_on_stop
    assert config.receiver.grpc.host == config.receiver.http.host == "127.0.0.1"
    assert container["restartPolicy"] == "Always"
    assert not {"readinessProbe", "startupProbe"} & container.keys()
    assert not [each for each in found if each["kind"] in {"Deployment", "StatefulSet", "Service"}]


KEYS: Mapping[str, set[str]] = {
    "receive": {"receiver", "kafka"},
    "assemble": {"kafka"},
    "score": {"kafka"},
    "judge": {"judge", "kafka"},
    "publish": {"admin", "kafka"},
}


@pytest.mark.parametrize("component", KEYS)
def test_a_pod_has_the_keys_of_its_roles_and_no_others(component: str) -> None:
    secrets = {
        "receiverTokens": {"existingSecret": "receiver"},
        "adminTokens": {"existingSecret": "admin"},
        "judgeApiKey": {"existingSecret": "judge"},
        "kafka": {"existingSecret": "kafka"},
    }

    pod = pods(example("scaled-keda", secrets=secrets))[component]

    assert {name for name, _ in secret_keys(main_container(pod))} == KEYS[component]


def test_a_change_of_the_settings_changes_the_pods_and_nothing_else_does() -> None:
    def checksum(**values: Any) -> str:
        pod = pods(manifests(rendered(values)))["standalone"]
        return pod["metadata"]["annotations"]["checksum/config"]

    assert checksum(config={"workers": 3}) != checksum()
    assert checksum(service={"admin": {"type": "NodePort"}}) == checksum()


def test_the_test_pod_sends_to_the_services_of_the_release() -> None:
    found = example("scaled-hpa")
    (container,) = one(found, "Pod", "agents-spanwise-test")["spec"]["containers"]
    (token,) = secret_keys(container)

    values = environment(container, {token: "t"})

    for url, service in (("OTLP_URL", "agents-spanwise"), ("ADMIN_URL", "agents-spanwise-admin")):
        port = int(values[url].rpartition(":")[2])
        assert values[url] == f"http://{service}.observability.svc:{port}"
        assert port in {p["port"] for p in one(found, "Service", service)["spec"]["ports"]}
