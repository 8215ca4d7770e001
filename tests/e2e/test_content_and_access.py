"""What must not get out: message texts with `redaction.content: drop`, anything at all without a token."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.proto.trace.v1.trace_pb2 import Status
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.support import certificates
from tests.support.agents import Turn, request, spans
from tests.support.asking import asked, span, trace_id
from tests.support.index_content import index_content
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

QUICK = "windows.trace.root_grace=300ms"
SECRETS = ("myopic walrus", "violet submarine", "zanzibar-4711")
"""Of a question, an answer and a tool call."""


# --- content ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("private")
    with Service(folder / "data", QUICK, "redaction.content=drop") as service:
        question, answer, order = SECRETS
        tool = span("secret", "", child="lookup")
        for key in ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result"):
            tool.attributes.add(key=key).value.string_value = json.dumps({"order": order})
        tool.status.code = Status.STATUS_CODE_ERROR
        tool.status.message = f"TimeoutError: {order} is unknown"
        send(
            service.grpc,
            request("desk-bot", [tool, span("secret", f"I am a {question}", f"A {answer}!")]),
            asked("secret", f"Again: I am a {question}", f"A {answer}!", number=1),
            request("desk-bot", spans(Turn(service="x", session=f"{order}"[:4], number=1))),
        )
        service.wait_for("scored", lambda: len(session_signals(service)) >= 2)
        service.shown(trace_id("secret"), spans=2)
        service.shown(trace_id("secret", 1))
        service.wait_for("its session at the API", lambda: shown_reliability(service))
        yield service


def shown_reliability(service: Service) -> bool:
    signals = service.get("/api/v1/sessions/secret")["signals"]
    return any(each["evaluator"] == "agent_reliability" for each in signals)


def session_signals(service: Service) -> list[str]:
    return [
        each["id"]
        for each in service.signals()
        if each["evaluator"] == "agent_reliability" and each["session_id"] == "secret"
    ]


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/session?id=secret",
        f"/trace?id={trace_id('secret')}",
        "/evaluators",
        "/health",
        f"/api/v1/traces/{trace_id('secret')}",
        "/api/v1/sessions/secret",
        "/api/v1/sessions",
        "/api/v1/signals?session_id=secret",
        "/metrics",
    ],
)
def test_dropped_content_is_on_no_page(private: Service, path: str) -> None:
    said = private.text(path)

    assert len(said) > 100
    assert [secret for secret in SECRETS if secret in said] == []


@pytest.mark.parametrize("file", ["recording", "case"])
def test_dropped_content_is_in_no_file(private: Service, file: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        private.text(f"/trace/{file}?id={trace_id('secret')}")

    said = refused.value.read().decode()
    assert refused.value.code == 404
    assert "There is nothing to download" in said
    assert [secret for secret in SECRETS if secret in said] == []


def test_dropped_content_is_in_no_signal_and_no_line_of_the_log(private: Service) -> None:
    signals = private.signal_lines()
    index = index_content(private.data / "index")

    assert len(signals) > 10
    assert b"agent_reliability" in index
    for secret in SECRETS:
        assert not [line for line in signals if secret in line]
        assert secret not in private.output.read_text()
        assert secret.encode() not in index


def test_kept_content_is_shown(tmp_path: Path) -> None:
    """Else the tests above would pass for a page that shows nothing."""
    with Service(tmp_path / "data", QUICK) as service:
        send(service.grpc, asked("open", f"I am a {SECRETS[0]}"))
        service.wait_for("scored", service.signals)

        service.shown(trace_id("open"))

        for path in ("/trace", "/trace/case"):
            assert SECRETS[0] in service.text(f"{path}?id={trace_id('open')}")
        with urllib.request.urlopen(
            f"{service.admin}/trace/recording?id={trace_id('open')}", timeout=10
        ) as file:
            assert SECRETS[0].encode() in file.read()


# --- the admin port ----------------------------------------------------------------------------------------------


CONTENT = (
    "/",
    "/api/v1/agents",
    "/api/v1/sessions",
    "/api/v1/signals",
    "/session?id=x",
    "/trace?id=x",
    "/trace/recording?id=x",
    "/trace/case?id=x",
    "/evaluators",
    "/health",
    "/nowhere",
)


def test_an_open_admin_port_without_token_answers_metrics_and_health_only(tmp_path: Path) -> None:
    with Service(tmp_path / "data", "admin.host=0.0.0.0") as service:
        service.become_ready()
        service.admin = service.admin.replace("0.0.0.0", "127.0.0.1")

        assert [service.status(each) for each in ("/metrics", "/healthz", "/readyz")] == [200] * 3
        assert set(map(service.status, CONTENT)) == {403}


def test_an_admin_port_with_a_token_wants_it(tmp_path: Path) -> None:
    settings = ("admin.host=0.0.0.0", "admin.bearer_tokens=[open-sesame]")
    with Service(tmp_path / "data", *settings) as service:
        service.admin = service.admin.replace("0.0.0.0", "127.0.0.1")
        wrong, right = ({"authorization": f"Bearer {each}"} for each in ("wrong", "open-sesame"))

        assert set(map(service.status, CONTENT)) == {401}
        assert {service.status(each, wrong) for each in CONTENT} == {401}
        assert service.status("/api/v1/agents", right) == 200
        assert service.status("/metrics") == 200
        assert "open-sesame" not in service.output.read_text()


# --- the receiver's door -----------------------------------------------------------------------------------------


TOKEN = "a-token-of-ours"


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> certificates.Certificates:
    return certificates.make(tmp_path_factory.mktemp("papers"))


@pytest.fixture(scope="module")
def fortress(
    tmp_path_factory: pytest.TempPathFactory, papers: certificates.Certificates
) -> Iterator[Service]:
    """Mutual TLS and a bearer token, on both transports."""
    settings = (
        f"receiver.tls.cert_file={papers.server.cert}",
        f"receiver.tls.key_file={papers.server.key}",
        f"receiver.tls.client_ca_file={papers.ca.cert}",
        f"receiver.bearer_tokens=[{TOKEN}]",
        QUICK,
    )
    with Service(tmp_path_factory.mktemp("fortress") / "data", *settings) as service:
        yield service


def a_span() -> ReadableSpan:
    kept = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o-mini"}
    with provider.get_tracer("tests").start_as_current_span("chat", attributes=attributes):
        pass
    return kept.get_finished_spans()[0]


def exporter(
    transport: str,
    service: Service,
    papers: certificates.Certificates,
    identity: certificates.Pair | None,
    token: str | None,
    timeout: float,
) -> SpanExporter:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    if transport == "grpc":
        credentials = grpc.ssl_channel_credentials(
            papers.ca.cert.read_bytes(),
            identity and identity.key.read_bytes(),
            identity and identity.cert.read_bytes(),
        )
        return GrpcExporter(
            endpoint=f"https://{service.grpc}",
            credentials=credentials,
            headers=headers,
            timeout=timeout,
        )
    return HttpExporter(
        endpoint=service.http,
        certificate_file=str(papers.ca.cert),
        client_key_file=identity and str(identity.key),
        client_certificate_file=identity and str(identity.cert),
        headers=headers,
        timeout=timeout,
    )


def accepted(service: Service) -> float:
    return service.total("spanwise_spans_received_total", '"accepted"')


@pytest.fixture(autouse=True)
def own_authorities_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """`requests` prefers these variables to the exporter's own setting."""
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_a_known_client_with_a_token_gets_in(
    transport: str, fortress: Service, papers: certificates.Certificates
) -> None:
    before = accepted(fortress)
    sender = exporter(transport, fortress, papers, papers.client, TOKEN, timeout=30)

    assert sender.export([a_span()]) is SpanExportResult.SUCCESS
    assert accepted(fortress) == before + 1
    sender.shutdown()


@pytest.mark.parametrize("transport", ["grpc", "http"])
@pytest.mark.parametrize("lacks", ["token", "right token", "certificate", "right certificate"])
def test_nobody_else_does(
    transport: str, lacks: str, fortress: Service, papers: certificates.Certificates
) -> None:
    before = accepted(fortress)
    token = {"token": None, "right token": "another"}.get(lacks, TOKEN)
    identity = {"certificate": None, "right certificate": papers.stranger}.get(lacks, papers.client)
    sender = exporter(
        transport, fortress, papers, identity, token, timeout=2
    )  # it tries again until then

    assert sender.export([a_span()]) is SpanExportResult.FAILURE
    assert accepted(fortress) == before
    sender.shutdown()
