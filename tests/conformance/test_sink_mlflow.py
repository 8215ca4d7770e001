"""Scores in a real MLflow, read back from it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from collector.base.errors import Retryable
from collector.config.sinks import MlflowSinkConfig
from collector.config.tree import Config
from collector.records.signal import SessionTraces
from collector.sinks.mlflow import MlflowSink
from collector.sinks.writeback.set_aside import FIRST_WAIT
from tests.support.clocks import SetClock
from tests.support.gate import Gate
from tests.support.signals import encode, failed, hex_of, signal, skipped
from tests.support.sink_contract import SinkContract
from tests.support.tools.mlflow import EXPERIMENT, assessments, delete_assessments, send_traces
from tests.support.tools.scores import otlp, published_signals, scores_survive_a_kill
from tests.support.tools.tool import MLFLOW, Server, serve

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

KNOWN = [hex_of(f"t-{number}") for number in range(600)]


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = serve(MLFLOW, tmp_path_factory.mktemp("mlflow"))
    try:
        send_traces(server.url, [(each, "s") for each in KNOWN])
        yield server
    finally:
        server.stop()


class _Mlflow:
    def __init__(self, url: str, gate: Gate) -> None:
        self._url = url
        self._gate = gate

    def sink(self) -> MlflowSink:
        return MlflowSink(MlflowSinkConfig(endpoint=self._gate.url), timeout=5.0)

    async def received(self) -> list[str]:
        found = await asyncio.to_thread(assessments, self._url)
        return [each["metadata"]["spanwise.id"] for each in found]

    async def break_off(self) -> None:
        self._gate.shut()

    async def mend(self) -> None:
        self._gate.open()

    def poison(self) -> bytes:
        return encode(signal(trace_id="not/an id"))  # MLflow itself takes any text


class TestMlflowSink(SinkContract):
    @pytest.fixture
    async def far_end(self, mlflow: Server) -> AsyncIterator[_Mlflow]:
        delete_assessments(mlflow.url)
        gate = Gate(mlflow.url)
        gate.open()
        yield _Mlflow(mlflow.url, gate)
        gate.shut()


@pytest.fixture
async def sink(mlflow: Server) -> AsyncIterator[MlflowSink]:
    delete_assessments(mlflow.url)
    made = MlflowSink(MlflowSinkConfig(endpoint=mlflow.url, wait=60.0), clock=SetClock())
    yield made
    await made.close(5.0)


def values(mlflow: Server) -> list[Any]:
    return [each["feedback"].get("value") for each in assessments(mlflow.url)]


async def test_a_score_says_what_it_is_and_holds_no_content(
    mlflow: Server, sink: MlflowSink
) -> None:
    found = signal(score=0.25, metadata={"user_input": "my secret"}, method="llm_judge")

    await sink.deliver(published_signals(found))

    (assessment,) = assessments(mlflow.url)
    assert assessment["trace_id"] == KNOWN[1]
    assert assessment["assessment_name"] == "tool_correctness"
    assert assessment["source"] == {"source_type": "LLM_JUDGE", "source_id": "spanwise"}
    assert assessment["feedback"]["value"] == 0.25
    assert assessment["rationale"] == "3 of 4 calls were right"
    assert assessment["metadata"] == {
        "spanwise.id": found.id,
        "spanwise.revision": "0",
        "spanwise.method": "llm_judge",
        "spanwise.evaluator_version": "1",
        "spanwise.agent_version": "1.4.2",
    }


async def test_a_repeat_is_once_a_revision_replaces_and_what_is_taken_back_is_gone_after_a_restart(
    mlflow: Server, sink: MlflowSink
) -> None:
    for score, revision in ((0.25, 0), (0.25, 0), (0.5, 1)):
        await sink.deliver(published_signals(signal(score=score, revision=revision)))
    assert values(mlflow) == [0.5]
    assert assessments(mlflow.url)[0]["valid"]

    after = MlflowSink(MlflowSinkConfig(endpoint=mlflow.url))
    await after.deliver(published_signals(skipped(revision=2)))
    await after.close(5.0)

    assert values(mlflow) == []


async def test_what_failed_is_shown_as_an_error_and_a_later_score_replaces_it(
    mlflow: Server, sink: MlflowSink
) -> None:
    await sink.deliver(published_signals(failed()))
    (assessment,) = assessments(mlflow.url)
    assert assessment["feedback"]["error"]["error_code"] == "timeout"

    await sink.deliver(published_signals(signal(score=0.5, revision=1)))
    (assessment,) = assessments(mlflow.url)
    assert assessment["feedback"]["value"] == 0.5
    assert "error" not in assessment["feedback"]


async def test_a_session_stands_on_its_first_trace_and_says_which_session_it_is(
    mlflow: Server, sink: MlflowSink
) -> None:
    ends = SessionTraces(first=KNOWN[1], newest=KNOWN[2])
    own = signal("s", None, score=0.75, traces=ends)
    other = signal("o", None, score=0.25, traces=ends, session_source="gen_ai.conversation.id")

    await sink.deliver(published_signals(own, other))

    found = {each["trace_id"]: each for each in assessments(mlflow.url)}
    assert found[KNOWN[1]]["feedback"]["value"] == 0.75
    assert found[KNOWN[1]]["metadata"]["mlflow.trace.session"] == "s"
    assert found[KNOWN[2]]["feedback"]["value"] == 0.25


async def test_what_mlflow_does_not_have_is_set_aside_and_the_rest_written(
    mlflow: Server, sink: MlflowSink
) -> None:
    late = hex_of(f"late {id(sink)}")
    batch = published_signals(signal(trace_id=late, evaluator="late"), signal())

    await sink.deliver(batch)

    assert len(values(mlflow)) == 1
    assert sink.waiting == {batch[0].position}

    send_traces(mlflow.url, [(late, "s")])
    assert isinstance(sink.clock, SetClock)
    sink.clock.now += FIRST_WAIT
    await sink.again()

    assert {each["assessment_name"] for each in assessments(mlflow.url)} >= {"late"}
    assert sink.waiting == set()


async def test_a_wrong_address_names_the_setting(mlflow: Server) -> None:
    there = Config.model_validate({"sinks": {"mlflow": {"endpoint": mlflow.url}}})
    elsewhere = f"{mlflow.url}/elsewhere"
    wrong = Config.model_validate({"sinks": {"mlflow": {"endpoint": elsewhere}}})
    sink = MlflowSink(MlflowSinkConfig(endpoint=elsewhere))

    assert await MlflowSink.reachable(there) is None
    assert str(await MlflowSink.reachable(wrong)).startswith("sinks.mlflow.endpoint: HTTP 40")
    with pytest.raises(Retryable, match=r"^sinks\.mlflow\.endpoint: HTTP 40[45]"):
        await sink.deliver(published_signals(signal()))
    await sink.close(5.0)


async def test_every_final_score_of_recordings_is_there_once_after_two_sends_and_a_kill(
    mlflow: Server, tmp_path: Path
) -> None:
    delete_assessments(mlflow.url)

    def found() -> dict[tuple[str, str], list[float | None]]:
        by_place: dict[tuple[str, str], list[float | None]] = {}
        for each in assessments(mlflow.url):
            place = (each["trace_id"], each["assessment_name"])
            by_place.setdefault(place, []).append(each["feedback"].get("value"))
        return by_place

    await asyncio.to_thread(
        scores_survive_a_kill,
        tmp_path / "data",
        settings=[f"sinks.mlflow.endpoint={mlflow.url}"],
        give_traces=otlp(f"{mlflow.url}/v1/traces", EXPERIMENT),
        found=found,
        sessions=(),
        ends={"session.id": "first"},
    )
