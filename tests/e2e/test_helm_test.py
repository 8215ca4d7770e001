"""What `helm test` runs, against a service with the environment that the chart gives it: mutual TLS and tokens."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from scripts.chart.examples import manifests, rendered
from tests.chart.support import environment, one, services
from tests.support import certificates
from tests.support.processes import ran
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SECRETS = {
    ("receiver", "token"): 'sends: "only\\"',
    ("admin", "token"): "0123",
}
VALUES = {
    "secrets": {
        "receiverTokens": {"existingSecret": "receiver"},
        "adminTokens": {"existingSecret": "admin"},
    },
    "tls": {"receiver": {"existingSecret": "certificates", "clientCaKey": "ca.crt"}},
    "tests": {"clientTlsSecret": "client", "timeoutSeconds": 60},
}


def test_the_test_pod_sends_a_trace_and_reads_its_scores(tmp_path: Path) -> None:
    made = certificates.make(tmp_path)
    files = {
        "/etc/spanwise/tls/receiver/tls.crt": made.server.cert,
        "/etc/spanwise/tls/receiver/tls.key": made.server.key,
        "/etc/spanwise/tls/receiver/ca.crt": made.ca.cert,
        "/tls/receiver/ca.crt": made.ca.cert,
        "/tls/client/tls.crt": made.client.cert,
        "/tls/client/tls.key": made.client.key,
    }
    found = manifests(rendered(VALUES))
    script = tmp_path / "send_and_read.py"
    script.write_text(one(found, "ConfigMap", "agents-spanwise-test")["data"][script.name])
    service = here(environment(services(found)["StatefulSet/agents-spanwise"], SECRETS), files)
    (container,) = one(found, "Pod", "agents-spanwise-test")["spec"]["containers"]
    pod = here(environment(container, SECRETS), files)

    with Service(
        tmp_path / "data", "windows.trace.root_grace=300ms", environment=service
    ) as running:
        otlp = running.http.removesuffix("/v1/traces").replace("0.0.0.0", "127.0.0.1")
        admin = running.admin.replace("0.0.0.0", "127.0.0.1")
        pod |= {"OTLP_URL": otlp, "ADMIN_URL": admin}
        by_api = run(script, pod)
        by_metrics = run(script, {k: v for k, v in pod.items() if k != "ADMIN_TOKEN"})
        stranger = run(script, pod | {"RECEIVER_TOKEN": "another", "TIMEOUT": "2"})

    assert '"tool_correctness": 1.0' in by_api.stdout, by_api.stderr
    assert by_api.returncode == by_metrics.returncode == 0, by_metrics.stderr
    assert stranger.returncode == 1
    assert [each for each in SECRETS.values() if each in running.output.read_text()] == []
    assert "401" in stranger.stderr


def here(values: Mapping[str, str], files: Mapping[str, Path]) -> dict[str, str]:
    """An environment whose files are those of this machine."""
    return {name: str(files.get(value, value)) for name, value in values.items()}


def run(script: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return ran(sys.executable, "-I", str(script), env={**os.environ, **environ}, timeout=100)
