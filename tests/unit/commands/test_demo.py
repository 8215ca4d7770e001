"""What the demo takes from a configuration: ports, workers and the page, nothing that it could harm."""

from contextlib import ExitStack, suppress
from pathlib import Path

from collector.base.net import bind
from collector.commands.demo import agents_environment, own_config
from collector.config.load import load
from collector.config.tree import Config

GIVEN = """
data_dir: /srv/spanwise
workers: 3
receiver: {grpc: {host: 0.0.0.0, port: 5317}, http: {host: 0.0.0.0, port: 5318}, bearer_tokens: [0123456789abcdef]}
admin: {host: 0.0.0.0, port: 5390, bearer_tokens: [0123456789abcdef]}
log: {kind: kafka, kafka: {bootstrap_servers: "kafka:9092"}}
judge: {model: gpt-4o-mini}
embedder: {kind: litellm, model: text-embedding-3-small}
sinks: {jsonl: {path: /srv/signals.jsonl}, kafka: {bootstrap_servers: "kafka:9092"}, otlp: {endpoint: "http://otlp:4317"}}
forward: {endpoint: "http://otlp:4317"}
"""


def test_ports_workers_and_the_page_are_taken_and_everything_else_is_its_own(
    tmp_path: Path,
) -> None:
    file = tmp_path / "spanwise.yaml"
    file.write_text(GIVEN)
    given = load([file], {}, [])

    config = own_config(given, tmp_path / "folder")

    assert (config.receiver.grpc.port, config.receiver.http.port) == (5317, 5318)
    assert (config.admin, config.workers) == (given.admin, 3)
    hosts = {config.receiver.grpc.host, config.receiver.http.host}
    assert hosts == {"127.0.0.1"}  # its agent sends no token
    assert config.data_dir == tmp_path / "folder"
    assert (config.log.kind, config.judge.model, config.forward) == ("disk", None, None)
    judged = own_config(given, tmp_path / "folder", "http://127.0.0.1:1/v1").judge
    assert (judged.base_url, judged.model) == ("http://127.0.0.1:1/v1", "openai/scripted")
    assert config.embedder.kind == "wordllama"
    assert (config.sinks.kafka, config.sinks.otlp) == (None, None)
    assert config.sinks.jsonl is not None
    assert config.sinks.jsonl.path is None


def test_beside_a_running_service_it_takes_free_ports(tmp_path: Path) -> None:
    given = Config()
    with ExitStack() as held:
        for port in (given.receiver.grpc.port, given.receiver.http.port, given.admin.port):
            with suppress(OSError):  # another program may hold it, which is the same
                held.enter_context(bind("127.0.0.1", port, backlog=1))

        config = own_config(given, tmp_path)

    ports = (config.receiver.grpc.port, config.receiver.http.port, config.admin.port)
    assert ports == (0, 0, 0)


def test_the_agent_sends_to_the_demo_alone_whatever_the_environment_sets() -> None:
    yours = {
        "PATH": "/usr/bin",
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=secret",
        "OTEL_RESOURCE_ATTRIBUTES": "service.name=mine",
        "OTEL_SDK_DISABLED": "true",
        "https_proxy": "http://proxy:3128",
        "GRPC_PROXY": "http://proxy:3128",
    }

    assert agents_environment(yours) == {"PATH": "/usr/bin"}
