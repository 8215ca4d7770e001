"""A worker looks at an open trace with the readers and the evaluator of closed ones, and answers only a suspicion."""

import json
from typing import Any

import pytest

from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.reading.port import GlanceJob, GlanceResult, reader_settings
from collector.reading.worker import JobRunner
from tests.support.dialect_spans import TRACE_ID, SpanSpec, request, trace_of

CONFIG = Config.model_validate({"embedder": {"kind": "none"}})
RUNNER = JobRunner(reader_settings(CONFIG))


def tool(number: int, **changes: Any) -> SpanSpec:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.call.arguments": json.dumps({"q": "x"}),
        "gen_ai.tool.call.result": "none",
    }
    return SpanSpec(id=100 + number, parent=1, attributes={**attributes, **changes}, start=number)


def model(number: int) -> SpanSpec:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}
    return SpanSpec(id=500 + number, parent=1, attributes=attributes, start=number)


def seen(*spans: SpanSpec, runner: JobRunner = RUNNER, **changes: Any) -> GlanceResult:
    fields: dict[str, Any] = {"service": "shop", "seen": 7.0, "revision": 2, **changes}
    pieces = tuple(request(each) for each in spans)
    return runner.glance(GlanceJob(trace_id=bytes.fromhex(TRACE_ID), pieces=pieces, **fields))


def test_a_loop_is_a_suspicion_with_all_that_its_signal_needs() -> None:
    spans = [tool(n) for n in range(11)]
    record = seen(*spans).record

    assert record is not None
    subject, outcome = record.subject, record.outcome
    assert (subject.service, subject.trace_id, subject.scope) == ("shop", TRACE_ID, "trace")
    assert (subject.seen, subject.revision, subject.closed) == (7.0, 2, None)
    assert (outcome.score, outcome.success, outcome.final) == (0.0, False, False)
    assert record.digest == trace_of(*spans).digest, "as the closed trace would have it"


@pytest.mark.parametrize("calls", [19, 20])
def test_twenty_model_calls_are_a_suspicion(calls: int) -> None:
    record = seen(*(model(n) for n in range(calls))).record

    assert (record is not None) == (calls == 20)
    if record is not None:
        assert (record.model, record.model_calls) == ("gpt-4o", 20)


def test_a_healthy_trace_says_how_far_it_is_from_a_loop() -> None:
    assert seen(*(tool(n) for n in range(4))) == GlanceResult(repeats_missing=7, call_share=1 / 5)


def test_it_says_how_many_spans_are_model_calls() -> None:
    of_both = seen(*(model(n) for n in range(3)), *(tool(n) for n in range(3, 7)))

    assert of_both.call_share == 4 / 8


def test_of_a_part_calls_of_one_kind_are_counted() -> None:
    other = {"gen_ai.tool.call.arguments": "{}", "gen_ai.tool.call.result": "other"}

    assert seen(*(tool(n) for n in range(4)), tool(9, **other), is_part=True) == GlanceResult(
        calls=4, call_share=1 / 6
    )


def test_what_cannot_be_read_or_is_not_asked_for_says_nothing() -> None:
    config = CONFIG.model_copy()
    without = JobRunner(reader_settings(config), plan_from(config, only=["confidence"]))
    job = GlanceJob(trace_id=bytes.fromhex(TRACE_ID), pieces=(b"torn",), seen=1.0, revision=0)

    assert RUNNER.glance(job) == GlanceResult()
    assert seen(*(tool(n) for n in range(11)), runner=without) == GlanceResult(call_share=1 / 12)
