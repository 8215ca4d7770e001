"""Scores for Langfuse, whose server cannot run here: the bodies fit the models of its SDK."""

import base64
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from collector.config.sinks import LangfuseSinkConfig
from collector.config.tree import Config
from collector.records.signal import SessionTraces
from collector.sinks.langfuse import LangfuseSink
from collector.sinks.port import Refused
from tests.support.loopback import Reply, Request, Stub, stub
from tests.support.signals import encode, hex_of, signal, skipped
from tests.support.sink_contract import SinkContract, published
from tests.support.tools.stubbed import StubbedTool, said
from tests.support.tools.tool import check_bodies

KEYS = {"public_key": "pk-1", "secret_key": "sk-secret"}


class NewServer(StubbedTool):
    """Takes lists of scores, in part where some are wrong."""

    def sink(self) -> LangfuseSink:
        settings = LangfuseSinkConfig.model_validate({"endpoint": self.stub.url, **KEYS})
        return LangfuseSink(settings, timeout=2.0)

    def take(self, asked: Request) -> Reply:
        if asked.method == "DELETE":
            return Reply(200)
        if asked.path != "/api/public/scores":
            return said(404, {"message": "no"})
        scores = cast("list[dict[str, Any]]", asked.body)
        good = [each for each in scores if each["name"] != "wrong"]
        self.taken += good
        wrong = len(scores) - len(good)
        if not wrong:
            return said(202, {"accepted": len(good)})
        errors = [{"message": "wrong name"}]
        return said(207, {"accepted": len(good), "rejected": wrong, "errors": errors})

    def id_of(self, taken: dict[str, Any]) -> str:
        return taken["metadata"]["spanwise.id"]


class OldServer(NewServer):
    """Takes one object there, and events elsewhere."""

    def take(self, asked: Request) -> Reply:
        if asked.path == "/api/public/scores" and isinstance(asked.body, list):
            return said(400, {"message": "Invalid request data"})
        if asked.path != "/api/public/ingestion":
            return Reply(200)
        self.taken += [each["body"] for each in asked.body["batch"]]
        successes = [{"id": each["id"], "status": 201} for each in asked.body["batch"]]
        return said(207, {"successes": successes, "errors": []})


@pytest.fixture
async def server() -> AsyncIterator[Stub]:
    async with stub() as made:
        yield made


class TestLangfuseSink(SinkContract):
    @pytest.fixture
    async def far_end(self, server: Stub) -> NewServer:
        return NewServer(server)


class TestLangfuseSinkOfOlderServers(SinkContract):
    @pytest.fixture
    async def far_end(self, server: Stub) -> OldServer:
        return OldServer(server)


@pytest.mark.process
async def test_the_bodies_fit_the_sdks_model(server: Stub) -> None:
    tool = NewServer(server)
    ends = SessionTraces(first="a" * 32, newest="b" * 32)

    await tool.deliver(
        [
            signal(score=0.25, metadata={"user_input": "secret"}),
            signal("s", None, traces=ends, started="2026-01-01T00:00:00.000000Z"),
            signal("other", None, traces=ends, session_source="trace", explanation=None),
        ]
    )

    check_bodies("langfuse", tool.taken)
    of_trace, of_session, of_newest = tool.taken
    assert (of_trace["traceId"], of_trace["value"]) == (hex_of("t-1"), 0.25)
    assert of_trace["metadata"]["spanwise.label"] == "fail"
    assert of_session["sessionId"] == "s"
    assert of_newest["traceId"] == "b" * 32
    assert "user_input" not in repr(tool.taken)
    login = base64.b64encode(b"pk-1:sk-secret").decode()
    assert server.requests[0].headers["authorization"] == f"Basic {login}"


async def test_a_revision_has_the_id_and_the_timestamp_of_the_first(server: Stub) -> None:
    """Langfuse keeps rows by both."""
    tool = NewServer(server)
    started = "2026-01-01T00:00:00.000000Z"
    later = signal(started=started, revision=1, score=0.1, time="2026-01-02T00:00:00.000000Z")

    await tool.deliver(signal(started=started), later)

    first, second = tool.taken
    assert (first["id"], first["timestamp"]) == (second["id"], second["timestamp"])
    assert second["timestamp"] == started


async def test_a_list_of_which_some_are_wrong_is_split(server: Stub) -> None:
    tool = NewServer(server)
    sink = tool.sink()
    await sink.deliver([published(0)])
    wrong = encode(signal(trace="t-2", evaluator="wrong"))

    with pytest.raises(Refused) as refused:
        await sink.deliver([published(1), published(2, wrong), published(3)])

    assert [each.offset for each in refused.value.reasons] == [2]
    assert set(await tool.received()) == {published(n).header.id for n in (0, 1, 3)}
    await sink.close(5.0)


async def test_a_score_that_is_taken_back_is_deleted(server: Stub) -> None:
    tool = NewServer(server)
    await tool.deliver(signal(), skipped())

    deleted = server.requests[-1]
    assert (deleted.method, deleted.path) == ("DELETE", f"/api/public/scores/{tool.taken[0]['id']}")


async def test_the_trial_names_the_keys(server: Stub) -> None:
    config = Config.model_validate({"sinks": {"langfuse": {"endpoint": server.url, **KEYS}}})
    server.replies = [Reply(200, '{"data": []}')]
    assert await LangfuseSink.reachable(config) is None
    assert server.requests[0].path == "/api/public/projects"

    server.replies = [Reply(401, "Invalid credentials sk-secret")]
    expected = "sinks.langfuse.public_key (or sinks.langfuse.secret_key): HTTP 401: "
    assert await LangfuseSink.reachable(config) == f"{expected}Invalid credentials ***"
