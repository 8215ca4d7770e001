"""What every way out makes of an answer that is not its tool's, or that means harm: not delivered, and bounded."""

import asyncio
import gc
import gzip
import json
import socket
import time
import tracemalloc
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from collector.base.errors import ConfigError, Retryable
from collector.base.http_client import HttpAnswer
from collector.commands import ask
from collector.commands.ask import ask_json
from collector.commands.cli import main
from collector.config.notify import KINDS, NotifyTarget
from collector.config.tree import Config
from collector.notices.messenger import Messenger
from collector.otlp.client import HttpTransport
from collector.otlp.signal import METRICS_SERVICE, TRACE_SERVICE, OtlpService
from collector.service.sinks import SINKS, sinks
from evaluators.judging.answers import read_object
from evaluators.judging.prompt import JudgeError, Prompt
from evaluators.providers.litellm import LiteLlmEmbedder, LiteLlmJudge
from tests.support.hostile_answers import (
    LOGIN,
    NOT_A_JUDGES,
    NOT_THE_TOOLS,
    NOT_THE_TOOLS_JSON,
    HostileServer,
    answer,
    hostile_server,
)
from tests.support.notices import notice
from tests.support.signals import signal
from tests.support.tools.scores import published_signals

LARGEST = 48 << 20
"""Bytes that an answer may cost at its worst: below what any of the bombs inflates to."""
URL = "the address of the server"
LONGEST = 2.0
"""Seconds for which the event loop may stand still, on a machine with other work; a bomb takes seven."""


@dataclass(frozen=True)
class Outlet:
    """One way out: `tell` sends one thing and raises what became of it."""

    tell: Callable[[], Awaitable[Any]]
    close: Callable[[], Awaitable[None]]


SINKS_OVER_HTTP: dict[str, dict[str, str]] = {
    "phoenix": {"endpoint": URL},
    "mlflow": {"endpoint": URL},
    "langfuse": {"endpoint": URL, "public_key": "p", "secret_key": "s"},
    "langsmith": {"endpoint": URL, "api_key": "k", "project_id": str(uuid.UUID(int=1))},
    "datadog": {"site": URL, "api_key": "k"},
    "otlp": {"endpoint": URL, "protocol": "http"},
}


def _sink(name: str, url: str) -> Outlet:
    section = {key: value.replace(URL, url) for key, value in SINKS_OVER_HTTP[name].items()}
    made: list[Any] = sinks(Config.model_validate({"sinks": {name: section}}))
    (sink,) = (each for each in made if each.name == name)
    return Outlet(lambda: sink.deliver(published_signals(signal())), lambda: sink.close(5.0))


def _notices(kind: str, url: str) -> Outlet:
    where = {"pagerduty": "R0UTE", "endpoint": url} if kind == "pagerduty" else {kind: url}
    messenger = Messenger("chat", NotifyTarget.model_validate(where))
    return Outlet(lambda: messenger.send([notice()], 0.0), messenger.close)


def _otlp(service: OtlpService, url: str) -> Outlet:
    transport = HttpTransport(url, {}, service=service, key="x.endpoint", timeout=5.0)
    return Outlet(lambda: transport.export(b""), transport.close)


MAKERS: dict[str, Callable[[str], Outlet]] = {
    "forward": partial(_otlp, TRACE_SERVICE),
    "metrics": partial(_otlp, METRICS_SERVICE),
    **{name: partial(_sink, name) for name in SINKS_OVER_HTTP},
    **{kind: partial(_notices, kind) for kind in KINDS},
}
ANY_YES = {"webhook"}
"""Those whose standard takes any 2xx for a yes."""


@pytest.fixture
async def server() -> AsyncIterator[HostileServer]:
    async with hostile_server() as made:
        yield made


@asynccontextmanager
async def bounded() -> AsyncGenerator[None]:
    """Fail where the block takes too much memory, or keeps the event loop to itself.

    The loop's own CPU time counts: what other processes of the machine take holds up no test.
    """
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.01)
            longest = max(longest, time.thread_time() - before)

    ticking = asyncio.create_task(tick())
    tracemalloc.start(1)
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        ticking.cancel()
    assert peak < LARGEST
    assert longest < LONGEST


def test_every_sink_over_http_is_among_them() -> None:
    assert {*SINKS} == {"jsonl", "kafka", *SINKS_OVER_HTTP}


@pytest.mark.parametrize("name", MAKERS)
async def test_what_is_not_the_tools_yes_is_tried_again(name: str, server: HostileServer) -> None:
    outlet = MAKERS[name](server.url)
    replies = NOT_THE_TOOLS if name in ANY_YES else {**NOT_THE_TOOLS, **NOT_THE_TOOLS_JSON}
    delivered: list[str] = []
    async with bounded():
        for what, reply in replies.items():
            server.reply = reply
            async with asyncio.timeout(30):
                try:
                    await outlet.tell()
                except Retryable:
                    continue
                delivered.append(what)
    await outlet.close()

    assert delivered == []
    assert not [head for head in server.heads if "\r\ncookie:" in head]
    assert all("\r\naccept-encoding: identity\r\n" in head for head in server.heads)


@pytest.mark.parametrize(
    ("body", "media", "rejected"),
    [
        (b"", "text/plain", 0),
        (b"{}", "application/json", 0),
        (b'{"partialSuccess": {"rejectedSpans": "3"}}', "application/json", 3),
        (b"\x0a\x02\x08\x03", "application/x-protobuf", 3),
        (b"\x0a\x02\x08\x03", "", 3),
    ],
)
async def test_a_backend_says_how_many_it_rejected(
    body: bytes, media: str, rejected: int, server: HostileServer
) -> None:
    transport = HttpTransport(server.url, {}, service=TRACE_SERVICE, key="x", timeout=5.0)
    server.reply = answer(body, **({"content_type": media} if media else {}))

    assert (await transport.export(b""))[0] == rejected

    await transport.close()


def _judge(model: str, url: str) -> Callable[[], Awaitable[Any]]:
    prompt = Prompt(name="q", system="s", user="u", schema=None, digest="d", read=read_object)
    judge = LiteLlmJudge(timeout=30.0, temperature=0.0, base_url=url, api_key="k")
    return lambda: judge.ask(prompt, model=model)


def _embedder(model: str, url: str) -> Callable[[], Awaitable[Any]]:
    embedder = LiteLlmEmbedder(model, timeout=30.0, base_url=url, api_key="k")
    return lambda: embedder.embed(["u"])


@pytest.mark.process  # openai's client asks `uname` what machine this is
@pytest.mark.parametrize(
    ("provider", "model"),
    [(_judge, "openai/x"), (_judge, "anthropic/x"), (_embedder, "openai/x")],
)
async def test_a_judge_takes_none_of_them_for_a_verdict(
    provider: Callable[[str, str], Callable[[], Awaitable[Any]]], model: str, server: HostileServer
) -> None:
    """The library itself would need gigabytes for the bombs, and a minute of CPU for a long text in an error."""
    tell = provider(model, server.url)
    server.reply = answer(LOGIN)
    with pytest.raises(JudgeError):
        await tell()  # outside of what is measured: the library imports its parts
    answers: list[str] = []
    async with bounded():
        for what, reply in {**NOT_THE_TOOLS, **NOT_THE_TOOLS_JSON, **NOT_A_JUDGES}.items():
            server.reply = reply
            try:
                await tell()
            except JudgeError:
                continue
            answers.append(what)

    assert answers == []
    assert not [head for head in server.heads if "\r\ncookie:" in head or "/login" in head]
    assert all("\r\naccept-encoding: identity\r\n" in head for head in server.heads)


@pytest.mark.process
async def test_a_judges_answer_in_gzip_is_read(server: HostileServer) -> None:
    said = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "{}"}}
    body = json.dumps({"id": "1", "object": "chat.completion", "model": "x", "choices": [said]})
    server.reply = answer(
        gzip.compress(body.encode()), content_encoding="gzip", content_type="application/json"
    )

    assert (await _judge("openai/x", server.url)()).text == "{}"


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # of http.client, which leaves sockets
async def test_a_command_takes_none_of_them_for_a_services_answer(server: HostileServer) -> None:
    """Those of `compare` and `cases`, which then read fields of it."""
    taken: list[str] = []
    for what, reply in {**NOT_THE_TOOLS, **NOT_THE_TOOLS_JSON}.items():
        server.reply = reply
        try:
            await asyncio.to_thread(ask_json, server.url, "/api/v1/sessions", {}, "token")
        except ConfigError:
            continue
        taken.append(what)
    gc.collect()  # else what http.client left is reported of a later test

    # objects without the fields that are read: see below
    assert taken == ["a length that is no number", "a refusal in JSON"]
    assert not [head for head in server.heads if "\r\ncookie:" in head or "/login" in head]


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"items": 1}',
        b'{"items": [{}], "next": 1}',
        b'{"items": [1]}',
        b'{"verdict": "pass"}',
        b'{"items": [{"session_id": 1}], "next": []}',
    ],
)
@pytest.mark.parametrize(
    "words", [("cases",), ("compare", "--service", "x", "--candidate", "1")], ids=" ".join
)
async def test_an_object_that_is_not_the_services_is_said_in_a_line(
    words: tuple[str, ...], body: bytes, server: HostileServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.reply = answer(body, content_type="application/json")

    code = await asyncio.to_thread(main, [*words, "--url", server.url])

    assert code == 2
    assert capsys.readouterr().err.count("\n") == 1


async def test_an_answer_that_does_not_end_is_waited_for_so_long_and_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ask, "LONGEST", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # which accepts, and answers nothing
        port = silent.getsockname()[1]
        with pytest.raises(ConfigError, match=r"no answer \(not whole after"):
            await asyncio.to_thread(ask_json, f"http://127.0.0.1:{port}", "/", {}, None)


async def test_a_refusal_of_a_chat_says_what_came_instead(server: HostileServer) -> None:
    outlet = _notices("slack", server.url)
    server.reply = answer(LOGIN)

    with pytest.raises(
        Retryable, match=r"chat\.slack: HTTP 200, but not the answer .*Please log in"
    ):
        await outlet.tell()

    await outlet.close()


def test_a_deep_answer_has_no_fields() -> None:
    assert HttpAnswer(200, b'{"a":' * 100_000).fields is None
