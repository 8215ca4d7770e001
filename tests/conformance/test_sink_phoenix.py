"""Scores in a real Phoenix, read back from it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from collector.base.errors import Retryable
from collector.config.sinks import PhoenixSinkConfig
from collector.config.tree import Config
from collector.records.signal import SessionTraces
from collector.sinks.phoenix import PhoenixSink
from collector.sinks.writeback.set_aside import FIRST_WAIT
from tests.support.clocks import SetClock, eventually
from tests.support.gate import Gate
from tests.support.signals import encode, hex_of, signal, skipped
from tests.support.sink_contract import SinkContract
from tests.support.tools.phoenix import annotations_of, delete_annotations, send_traces, traces
from tests.support.tools.scores import otlp, published_signals, scores_survive_a_kill
from tests.support.tools.tool import PHOENIX, Server, serve

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

KNOWN = [hex_of(f"t-{number}") for number in range(600)]
SESSION = "a session of Phoenix"


@pytest.fixture(scope="module")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = serve(PHOENIX, tmp_path_factory.mktemp("phoenix"))
    try:
        send_traces(server.url, [(each, SESSION) for each in KNOWN])
        asyncio.run(eventually(lambda: set(KNOWN) <= traces(server.url)))
        yield server
    finally:
        server.stop()


class _Phoenix:
    def __init__(self, url: str, gate: Gate) -> None:
        self._url = url
        self._gate = gate

    def sink(self) -> PhoenixSink:
        return PhoenixSink(PhoenixSinkConfig(endpoint=self._gate.url), timeout=5.0)

    async def received(self) -> list[str]:
        found = await asyncio.to_thread(annotations_of, self._url, "trace")
        return [each["metadata"]["spanwise.id"] for each in found]

    async def break_off(self) -> None:
        self._gate.shut()

    async def mend(self) -> None:
        self._gate.open()

    def poison(self) -> bytes:
        return encode(signal(trace="t-1", evaluator="note"))  # a name that Phoenix keeps for itself


class TestPhoenixSink(SinkContract):
    @pytest.fixture
    async def far_end(self, phoenix: Server) -> AsyncIterator[_Phoenix]:
        delete_annotations(phoenix.url)
        gate = Gate(phoenix.url)
        gate.open()
        yield _Phoenix(phoenix.url, gate)
        gate.shut()


@pytest.fixture
async def sink(phoenix: Server) -> AsyncIterator[PhoenixSink]:
    delete_annotations(phoenix.url)
    made = PhoenixSink(PhoenixSinkConfig(endpoint=phoenix.url, wait=60.0), clock=SetClock())
    yield made
    await made.close(5.0)


def stands(phoenix: Server, kind: str = "trace") -> list[dict[str, Any]]:
    """What the annotations say."""
    return [each["result"] for each in annotations_of(phoenix.url, kind)]


async def test_a_score_says_what_it_is_and_holds_no_content(
    phoenix: Server, sink: PhoenixSink
) -> None:
    content = {"user_input": "my secret question"}
    found = signal(trace="t-1", score=0.25, metadata=content, method="llm_judge")

    await sink.deliver(published_signals(found))

    (annotation,) = annotations_of(phoenix.url, "trace")
    assert annotation["name"] == "tool_correctness"
    assert annotation["trace_id"] == KNOWN[1]
    assert annotation["annotator_kind"] == "LLM"
    assert annotation["result"] == {
        "score": 0.25,
        "label": "fail",
        "explanation": "3 of 4 calls were right",
    }
    assert annotation["metadata"] == {
        "spanwise.id": found.id,
        "spanwise.revision": "0",
        "spanwise.method": "llm_judge",
        "spanwise.evaluator_version": "1",
        "spanwise.agent_version": "1.4.2",
    }


async def test_a_repeat_is_once_a_revision_replaces_and_what_is_taken_back_is_gone_after_a_restart(
    phoenix: Server, sink: PhoenixSink
) -> None:
    for score, revision in ((0.25, 0), (0.25, 0), (0.5, 1)):
        await sink.deliver(published_signals(signal(score=score, revision=revision)))
    assert [each["score"] for each in stands(phoenix)] == [0.5]

    after = PhoenixSink(PhoenixSinkConfig(endpoint=phoenix.url))
    await after.deliver(published_signals(skipped(revision=2)))
    await after.close(5.0)

    assert [(each["score"], each["label"]) for each in stands(phoenix)] == [(None, "not_scored")]


async def test_a_session_of_phoenix_has_its_scores_and_another_its_newest_trace(
    phoenix: Server, sink: PhoenixSink
) -> None:
    ends = SessionTraces(first=KNOWN[1], newest=KNOWN[2])
    own = signal(SESSION, None, score=0.75, traces=ends)
    other = signal("s", None, score=0.25, traces=ends, session_source="gen_ai.conversation.id")

    await sink.deliver(published_signals(own, other))

    assert [each["score"] for each in stands(phoenix, "session")] == [0.75]
    (annotation,) = annotations_of(phoenix.url, "trace")
    assert (annotation["trace_id"], annotation["result"]["score"]) == (KNOWN[2], 0.25)


async def test_what_phoenix_does_not_have_is_set_aside_and_the_rest_written(
    phoenix: Server, sink: PhoenixSink
) -> None:
    late = hex_of(f"late {id(sink)}")
    batch = published_signals(
        signal(trace_id=late, evaluator="late"), signal("no such, session", None), signal()
    )

    await sink.deliver(batch)

    assert len(stands(phoenix)) == 1
    assert sink.waiting == {batch[0].position, batch[1].position}

    send_traces(phoenix.url, [(late, SESSION)])
    await eventually(lambda: late in traces(phoenix.url))
    assert isinstance(sink.clock, SetClock)
    sink.clock.now += FIRST_WAIT
    await sink.again()

    assert [each["name"] for each in annotations_of(phoenix.url, "trace")][1:] == ["late"]
    assert sink.waiting == {batch[1].position}


async def test_a_wrong_address_names_the_setting(phoenix: Server) -> None:
    there = Config.model_validate({"sinks": {"phoenix": {"endpoint": phoenix.url}}})
    wrong = Config.model_validate(
        {"sinks": {"phoenix": {"endpoint": phoenix.url, "project": "none"}}}
    )
    path = PhoenixSink(PhoenixSinkConfig(endpoint=f"{phoenix.url}/elsewhere"))

    assert await PhoenixSink.reachable(there) is None
    expected = "sinks.phoenix.endpoint (or sinks.phoenix.project): HTTP 404: "
    assert str(await PhoenixSink.reachable(wrong)).startswith(expected)
    with pytest.raises(Retryable, match=r"^sinks\.phoenix\.endpoint .*HTTP 40[45]"):
        await path.deliver(published_signals(signal()))
    await path.close(5.0)


async def test_every_final_score_of_recordings_is_there_once_after_two_sends_and_a_kill(
    phoenix: Server, tmp_path: Path
) -> None:
    delete_annotations(phoenix.url)

    def found() -> dict[tuple[str, str], list[float | None]]:
        by_place: dict[tuple[str, str], list[float | None]] = {}
        for kind in ("trace", "session"):
            for each in annotations_of(phoenix.url, kind):
                place = (each[f"{kind}_id"], each["name"])
                by_place.setdefault(place, []).append(each["result"]["score"])
        return by_place

    await asyncio.to_thread(
        scores_survive_a_kill,
        tmp_path / "data",
        settings=[f"sinks.phoenix.endpoint={phoenix.url}"],
        give_traces=otlp(f"{phoenix.url}/v1/traces"),
        found=found,
        sessions={"session.id"},
    )
