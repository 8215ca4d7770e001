"""What the chart sets reaches Spanwise: file and environment of every container say what the values say."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from collector.config.load import load
from collector.config.tree import Config
from scripts.chart.examples import Manifest, names, values_of
from scripts.chart.places import ROOT
from tests.chart.configuration import problems, with_secrets, written
from tests.chart.examples import objects
from tests.chart.support import of_kind, one, pods, render, services
from tests.support.processes import ran

EVERY = ("receive", "assemble", "score", "judge", "publish")


def configs(found: Sequence[Manifest], folder: Path) -> dict[str, Config]:
    """The configuration of each service."""
    file, environments = written(found, folder)
    return {name: load([file], each, []) for name, each in environments.items()}


@pytest.mark.parametrize("example", [each for each in names() if "sidecar" not in each])
def test_each_service_has_the_roles_the_log_and_the_ports_of_its_pod(
    example: str, tmp_path: Path
) -> None:
    values = values_of(example)
    found = objects(example)
    is_scaled = values.get("mode") == "scaled"

    for name, config in configs(found, tmp_path).items():
        component = name.rpartition("-")[2]
        own = values.get("scaled", {}).get(component, {}).get("roles", [component])
        ports = {each["name"]: each["containerPort"] for each in services(found)[name]["ports"]}
        hosts = (config.admin.host, config.receiver.grpc.host, config.receiver.http.host)
        assert config.roles == (tuple(own) if is_scaled else EVERY)
        assert config.log.kind == ("kafka" if is_scaled else "disk")
        assert set(hosts) == {"0.0.0.0"}
        assert str(config.data_dir).startswith("/data/")
        assert ports["admin"] == config.admin.port
        assert ("otlp-grpc" in ports) == ("receive" in config.roles)


def test_keys_tokens_and_headers_arrive_as_they_are_in_the_secrets(tmp_path: Path) -> None:
    (config,) = configs(objects("locked-down"), tmp_path).values()

    assert config.judge.api_key
    assert config.redaction.key
    assert config.forward
    assert config.sinks.kafka
    assert config.receiver.tls
    headers = config.forward.headers
    secrets = [*config.receiver.bearer_tokens, *config.admin.bearer_tokens, config.judge.api_key,
               config.redaction.key, headers["authorization"], headers["x-scope"]]  # fmt: skip
    assert [each.get_secret_value() for each in secrets] == [
        "0spanwise-receiver.current",
        "0spanwise-receiver.previous",
        "0spanwise-admin.token",
        "0openai.api-key",
        "0redaction.redaction-key",
        "0traces.bearer",
        "0traces.tenant",
    ]
    assert config.sinks.kafka.security.username == "0signals-kafka.username"
    assert config.receiver.tls.client_ca_file == tmp_path / "tls/receiver/ca.crt"


def test_spanwise_validate_accepts_them(tmp_path: Path) -> None:
    file, environments = written(objects("locked-down"), tmp_path)
    (variables,) = environments.values()

    done = ran(
        *(sys.executable, "-m", "collector.commands.start", "validate", "--config", str(file)),
        env={**variables, "PATH": "", "PYTHONPATH": str(ROOT)},
    )

    assert (done.stdout, done.returncode) == ("the configuration is valid\n", 0), done.stderr


def test_a_variable_that_is_no_setting_is_reported(tmp_path: Path) -> None:
    found = render("extraEnv: [{name: SPANWISE_WINDOWS__TRACE__IDEL, value: '3'}]")

    assert "idel" in "\n".join(problems(found, tmp_path))


def test_a_sidecar_starts_first_stops_last_listens_on_loopback_and_scores_at_the_stop(
    tmp_path: Path,
) -> None:
    found = objects("sidecar-kyverno")
    ((name, config),) = configs(found, tmp_path).items()
    pod = pods(found)[name]
    (native,) = pod["initContainers"]

    assert config.drain_on_stop
    assert config.receiver.grpc.host == config.receiver.http.host == "127.0.0.1"
    assert native["restartPolicy"] == "Always"
    assert {each["name"].split("-")[0] for each in pod["volumes"]} == {"spanwise"}
    assert not {each["kind"] for each in found} & {"Deployment", "StatefulSet", "Service"}


def test_a_change_of_the_settings_changes_the_pods_and_nothing_else_does() -> None:
    def checksum(text: str = "") -> Any:
        template = one(render(text), "StatefulSet")["spec"]["template"]
        return template["metadata"]["annotations"]["checksum/config"]

    assert checksum("config: {workers: 3}") != checksum()
    assert checksum("service: {admin: {type: NodePort}}") == checksum()


@pytest.mark.parametrize("example", ["default", "scaled-hpa"])
def test_the_test_pod_sends_to_the_services_of_the_release(example: str) -> None:
    found = objects(example)
    pod = one(found, "Pod", "test")
    variables = with_secrets(pod["spec"]["containers"][0])

    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    for url, service in (("OTLP_URL", "agents-spanwise"), ("ADMIN_URL", "agents-spanwise-admin")):
        port = int(variables[url].rpartition(":")[2])
        assert variables[url] == f"http://{service}.observability.svc:{port}"
        assert port in {each["port"] for each in one(found, "Service", service)["spec"]["ports"]}
    assert not of_kind(render("tests: {enabled: false}"), "Pod")
