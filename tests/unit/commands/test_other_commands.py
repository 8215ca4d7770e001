"""`spanwise demo`, `notify` and `replay`, and the health check of the image."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from collector.base.net import bind
from collector.commands import healthcheck
from collector.commands.demo import agents_environment, own_config
from collector.commands.replay import begin
from collector.config.load import load
from collector.config.tree import Config
from tests.support.command import Run, settings
from tests.support.loopback import TAKEN, Reply, Stub, stub
from tests.support.table import for_each

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


@pytest.fixture
async def server() -> AsyncIterator[Stub]:
    async with stub() as made:
        made.answer = lambda asked: TAKEN["slack" if asked.path == "/chat" else "webhook"]
        yield made


def targets(server: Stub) -> list[str]:
    chat, hook = f"{server.url}/chat", f"{server.url}/hook"
    return settings(f"notify.to.chat.slack={chat}", f"notify.to.hook.webhook={hook}")


async def test_each_target_is_sent_a_test_and_its_end(server: Stub, run: Run) -> None:
    done = await asyncio.to_thread(run, "notify", "--test", *targets(server))

    assert done.code == 0
    assert [each.path for each in server.requests] == ["/chat", "/chat", "/hook", "/hook"]
    assert "This is a test" in server.requests[0].body["text"]
    assert server.requests[3].body["type"] == "spanwise.alert.resolved.v1"
    assert done.out.splitlines() == [
        "chat: sent a test notice, and its end",
        "hook: sent a test notice, and its end",
    ]


async def test_one_target_by_its_name(server: Stub, run: Run) -> None:
    done = await asyncio.to_thread(run, "notify", "--test", "hook", *targets(server))

    assert (done.code, {each.path for each in server.requests}) == (0, {"/hook"})


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        ([], 2, "give --test"),
        (["--test"], 1, "notify.to: no target is set"),
        (
            ["--test", "mail", "--set", "notify.to.chat.slack=http://x"],
            1,
            "notify.to: no target `mail`",
        ),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], code: int, line: str, run: Run) -> None:
    done = run("notify", *arguments)

    done.assert_one_line(line)
    assert done.code == code


async def test_a_target_that_refuses_is_named_without_its_address(server: Stub, run: Run) -> None:
    server.replies = [Reply(404, "no_team")]
    target = settings(f"notify.to.chat.slack={server.url}/T000")

    done = await asyncio.to_thread(run, "notify", "--test", *target)

    assert (done.code, done.complaints) == (1, ["notify.to.chat.slack: HTTP 404: no_team"])


NOW = datetime(2026, 7, 1, 12, tzinfo=UTC).timestamp()
DATE = datetime(2024, 1, 1, tzinfo=UTC).timestamp()


@for_each(
    ("since", "seconds"),
    [
        (None, 0.0),
        ("24h", NOW - 86_400),
        ("20240101", DATE),
        ("2024-01-01T00:00:00Z", DATE),
        ("2024-01-01T01:00:00+01:00", DATE),
        ("2024-01-01 00:00", DATE),
    ],
)
def test_replay_takes_a_duration_with_a_unit_and_a_time(since: str | None, seconds: float) -> None:
    """Digits alone are a date, never seconds."""
    assert begin(since, now=NOW) == seconds


@pytest.mark.parametrize("since", ["24", "h", "", "yesterday"])
def test_a_number_alone_is_refused(since: str, tmp_path: Path, run: Run) -> None:
    done = run("replay", "--since", since, "--set", f"data_dir={tmp_path}")

    done.assert_one_line("--since: expected a duration such as 24h or a time", f"got `{since}`")


@for_each(
    ("environment", "expected"),
    [
        ({}, ("127.0.0.1", 4390)),
        ({"SPANWISE_ADMIN__HOST": "0.0.0.0", "SPANWISE_ADMIN__PORT": "80"}, ("127.0.0.1", 80)),
        ({"SPANWISE_ADMIN__HOST": "::"}, ("::1", 4390)),
        ({"SPANWISE_ADMIN__HOST": "10.0.0.7", "SPANWISE_ADMIN__PORT": ""}, ("10.0.0.7", 4390)),
    ],
)
def test_the_health_check_asks_where_the_admin_port_is(
    environment: Mapping[str, str], expected: tuple[str, int]
) -> None:
    assert healthcheck.address(environment) == expected


@pytest.mark.parametrize(("status", "said"), [(200, None), (503, "/healthz answers 503")])
async def test_an_answer_that_is_not_200_is_reported(
    server: Stub, status: int, said: str | None
) -> None:
    server.answer = lambda asked: Reply(status if asked.path == "/healthz" else 404, "")
    environment = {"SPANWISE_ADMIN__PORT": server.url.rpartition(":")[2]}

    assert await asyncio.to_thread(healthcheck.complaint, environment) == said


@pytest.mark.parametrize("port", ["1", "admin"])
def test_no_answer_is_one_line_and_exit_code_1(
    port: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPANWISE_ADMIN__PORT", port)

    assert healthcheck.main() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("spanwise: no answer: ")
