"""A TLS server with a trusted certificate that names another host: said clearly. Forwarding: test_forwarding.py."""

import json
from pathlib import Path

import pytest

from tests.support.asking import asked
from tests.support.certificates import of_another_name
from tests.support.loopback import Stub
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]
SAYS = (
    "Sink `otlp` fails; its signals wait in the log",
    "metrics.otlp.endpoint does not take our metrics",
)


def test_it_is_said_and_nothing_is_sent(tmp_path: Path) -> None:
    ca, pair = of_another_name(tmp_path)
    with Stub(pair) as server:
        target = {"endpoint": server.url, "protocol": "http"}
        service = Service(
            tmp_path / "data",
            f"sinks.otlp={json.dumps(target)}",
            f"metrics.otlp={json.dumps({**target, 'interval': '1s'})}",
            "judge.model=openai/test",
            f"judge.base_url={server.url}/v1",
            "judge.api_key=none",
            "embedder.kind=none",
            "windows.trace.root_grace=300ms",
            environment={"SSL_CERT_FILE": str(ca.cert)},
        )

        def errors_of_the_judge() -> list[str]:
            return [
                each["error"]["message"]
                for each in service.signals()
                if each["evaluator"] == "task_completion" and each["method"] == "llm_judge"
            ]

        with service:
            send(service.grpc, asked("s1", "hello"))
            service.wait_for("all", lambda: all(s in service.output.read_text() for s in SAYS))
            assert service.wait_for("the judge's words", errors_of_the_judge) == [
                "the provider's certificate is not trusted"
            ]

    for line in service.output.read_text().splitlines():
        if any(said in line for said in SAYS):
            assert "mismatch" in line or "Hostname Verification" in line
    assert server.requests == []
