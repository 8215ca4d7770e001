"""Scores for LangSmith, which is hosted: the bodies fit the model of its SDK."""

import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from collector.config.sinks import LangsmithSinkConfig
from collector.config.tree import Config
from collector.records.signal import SessionTraces
from collector.sinks.langsmith import LangsmithSink
from tests.support.loopback import Reply, Request, stub
from tests.support.signals import hex_of, signal, skipped
from tests.support.sink_contract import SinkContract
from tests.support.tools.scores import published_signals
from tests.support.tools.stubbed import StubbedTool, said
from tests.support.tools.tool import check_bodies

PROJECT = "6f5d0f4e-53a3-5c0e-9d6c-2b1f2f0b6a11"
UNKNOWN = hex_of("a run that LangSmith does not have")


class LangSmith(StubbedTool):
    """Feedback by id, and one run that it does not have."""

    @property
    def settings(self) -> dict[str, str]:
        return {"endpoint": self.stub.url, "api_key": "ls-secret", "project_id": PROJECT}

    def sink(self) -> LangsmithSink:
        return LangsmithSink(LangsmithSinkConfig.model_validate(self.settings), timeout=2.0)

    def take(self, asked: Request) -> Reply:
        if asked.method == "POST":
            if asked.body["run_id"] == str(uuid.UUID(UNKNOWN)):
                return said(404, {"detail": "Run not found"})
            self.taken.append(asked.body)
            return said(200, asked.body)
        found = [each for each in self.taken if asked.path == f"/feedback/{each['id']}"]
        if not found:
            return said(404, {"detail": "Feedback not found"})
        if asked.method == "DELETE":
            self.taken.remove(found[0])
        else:
            found[0].update(asked.body)
        return said(200, {} if asked.method == "DELETE" else found[0])

    def id_of(self, taken: dict[str, Any]) -> str:
        return taken["feedback_source"]["metadata"]["spanwise.id"]

    async def received(self) -> list[str]:
        """In the order of the traces: eight requests run at once."""
        self.taken.sort(key=lambda each: RUNS.get(each["run_id"], 0))
        return await super().received()


RUNS = {str(uuid.UUID(hex_of(f"t-{number}"))): number for number in range(600)}


@pytest.fixture
async def tool() -> AsyncIterator[LangSmith]:
    async with stub() as made:
        yield LangSmith(made)


class TestLangsmithSink(SinkContract):
    @pytest.fixture
    async def far_end(self, tool: LangSmith) -> LangSmith:
        return tool


@pytest.mark.process
async def test_the_bodies_fit_the_sdks_model(tool: LangSmith) -> None:
    ends = SessionTraces(first="a" * 32, newest="b" * 32)
    of_trace = signal(score=1 / 3, method="llm_judge", metadata={"user_input": "secret"})

    await tool.deliver([of_trace, signal("s", None, traces=ends)])

    check_bodies("langsmith", tool.taken)
    found = {each["key"]: each for each in tool.taken}
    scored, of_session = found["tool_correctness"], found["agent_reliability"]
    assert scored["run_id"] == scored["trace_id"] == str(uuid.UUID(hex_of("t-1")))
    assert scored["score"] == 0.3333, "more decimals are refused"
    assert scored["feedback_source"]["type"] == "model"
    assert scored["session_id"] == PROJECT
    assert of_session["run_id"] == str(uuid.UUID("b" * 32))
    assert "user_input" not in repr(tool.taken)
    assert tool.stub.requests[0].headers["x-api-key"] == "ls-secret"


async def test_a_repeat_is_once_a_revision_replaces_and_what_is_taken_back_is_gone(
    tool: LangSmith,
) -> None:
    sink = tool.sink()
    for score in (0.25, 0.25, 0.5):
        await sink.deliver(published_signals(signal(score=score)))
    assert [each["score"] for each in tool.taken] == [0.5]

    await sink.deliver(published_signals(skipped()))
    assert tool.taken == []
    await sink.close(5.0)


async def test_a_run_that_is_not_there_yet_waits(tool: LangSmith) -> None:
    sink = tool.sink()
    batch = published_signals(signal(), signal(trace_id=UNKNOWN, evaluator="other"))

    await sink.deliver(batch)

    assert len(tool.taken) == 1
    assert sink.waiting == {batch[1].position}
    await sink.close(5.0)


async def test_the_trial_names_the_key(tool: LangSmith) -> None:
    config = Config.model_validate({"sinks": {"langsmith": tool.settings}})
    tool.stub.replies = [Reply(200, '{"version": "0.13"}'), Reply(403, "ls-secret may not")]

    assert await LangsmithSink.reachable(config) is None
    expected = "sinks.langsmith.api_key: HTTP 403: *** may not"
    assert await LangsmithSink.reachable(config) == expected
    assert tool.stub.requests[0].path == "/info"
