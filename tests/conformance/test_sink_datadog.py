"""Scores for Datadog, which is hosted: the bodies fit the type of its SDK."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from collector.config.sinks import DatadogSinkConfig
from collector.config.tree import Config
from collector.sinks.datadog import DatadogSink, label_of
from tests.support.loopback import Reply, Request, stub
from tests.support.signals import hex_of, signal, skipped
from tests.support.sink_contract import SinkContract
from tests.support.tools.stubbed import StubbedTool, said
from tests.support.tools.tool import check_bodies


class Datadog(StubbedTool):
    """Keeps every metric: it has no places."""

    @property
    def settings(self) -> dict[str, str]:
        return {"site": self.stub.url, "api_key": "dd-secret"}

    def sink(self) -> DatadogSink:
        return DatadogSink(DatadogSinkConfig.model_validate(self.settings), timeout=2.0)

    def take(self, asked: Request) -> Reply:
        if asked.path != "/api/intake/llm-obs/v2/eval-metric":
            return said(404, {"errors": ["Not found"]})
        data = asked.body["data"]
        assert data["type"] == "evaluation_metric"
        self.taken += data["attributes"]["metrics"]
        return said(202, {})

    def id_of(self, taken: dict[str, Any]) -> str:
        return next(each[12:] for each in taken["tags"] if each.startswith("spanwise_id:"))


@pytest.fixture
async def tool() -> AsyncIterator[Datadog]:
    async with stub() as made:
        yield Datadog(made)


class TestDatadogSink(SinkContract):
    @pytest.fixture
    async def far_end(self, tool: Datadog) -> Datadog:
        return tool


@pytest.mark.process
async def test_the_bodies_fit_the_sdks_type(tool: Datadog) -> None:
    await tool.deliver(signal(score=0.25, metadata={"user_input": "secret"}))

    check_bodies("datadog", tool.taken)
    (metric,) = tool.taken
    trace, span = hex_of("t-1"), hex_of("t-1", 16)
    ids = {"trace_id": str(int(trace, 16)), "span_id": str(int(span, 16))}
    assert metric["join_on"] == {"span": ids}
    assert (metric["ml_app"], metric["label"]) == ("support-bot", "tool_correctness")
    assert (metric["score_value"], metric["assessment"]) == (0.25, "fail")
    assert metric["timestamp_ms"] == 1_700_000_000_000
    assert "source:otel" in metric["tags"]
    assert "user_input" not in repr(metric)
    assert tool.stub.requests[0].headers["dd-api-key"] == "dd-secret"


async def test_a_score_is_sent_once_because_a_second_would_stand_beside_it(tool: Datadog) -> None:
    revisions = (signal(), signal(revision=1, score=0.1), skipped(revision=2))
    await tool.deliver(*revisions, signal("s", None))

    assert [each["score_value"] for each in tool.taken] == [0.75]


def test_a_label_is_what_datadog_takes() -> None:
    assert label_of("answer-quality v2") == "answer_quality_v2"
    assert label_of("2nd") == "e_2nd"
    assert label_of("é") == "e__"
    assert len(label_of("x" * 300)) == 200


async def test_the_trial_names_key_and_site(tool: Datadog) -> None:
    config = Config.model_validate({"sinks": {"datadog": tool.settings}})
    tool.stub.replies = [Reply(200, '{"valid": true}'), Reply(403, "Forbidden")]

    assert await DatadogSink.reachable(config) is None
    expected = "sinks.datadog.api_key (or sinks.datadog.site): HTTP 403: Forbidden"
    assert await DatadogSink.reachable(config) == expected
    assert tool.stub.requests[0].path == "/api/v1/validate"
    hosted = DatadogSinkConfig.model_validate({"api_key": "k", "site": "datadoghq.eu"})
    assert hosted.endpoint == "https://api.datadoghq.eu"
