"""A worker reads, redacts and glances at traces whose spans it holds or reads in the log."""

import json
from pathlib import Path
from typing import Any

import pytest

from collector.base.clock import wall
from collector.base.telemetry import Telemetry
from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.log.disk.disk_log import DiskLog
from collector.log.port import SPANS, New
from collector.reading.port import (
    SPANS_MISSING,
    GlanceJob,
    GlanceResult,
    ReaderSettings,
    ReadJob,
    decode_job,
    encode_job_into,
    reader_settings,
)
from collector.reading.worker import JobRunner, PieceReader
from collector.records.span_refs import Piece, SpanRef
from tests.support import asking, spans
from tests.support.dialect_spans import TRACE_ID, SpanSpec, request, trace_of

# --- a job may name its spans instead of holding them ----------------------------------------------------------------


FIRST, SECOND, OTHER = (
    spans.request(spans.root()),
    spans.request(spans.child(2)),
    spans.request(spans.root(trace=2)),
)


def settings_in(folder: Path, **more: Any) -> ReaderSettings:
    config = {"embedder": {"kind": "none"}, "data_dir": str(folder), **more}
    return reader_settings(Config.model_validate(config))


def job(*pieces: Piece) -> ReadJob:
    return ReadJob(trace_id=spans.trace_id(1), pieces=pieces, closed="idle")


@pytest.fixture
async def refs(tmp_path: Path) -> list[SpanRef]:
    """Where the first two stand in a log of a process that has ended."""
    log = await DiskLog.open(
        tmp_path / "log", max_size=8 << 20, clock=wall, telemetry=Telemetry(), groups={}
    )
    await log.write([New(topic=SPANS, key=b"", value=OTHER + FIRST)])
    await log.write([New(topic=SPANS, key=b"", value=SECOND)])
    await log.close()
    size = len(OTHER)
    return [SpanRef(0, 0, size, size + len(FIRST)), SpanRef(0, 1, 0, len(SECOND))]


async def test_a_trace_is_the_same_whether_its_spans_came_or_are_read_in_the_log(
    tmp_path: Path, refs: list[SpanRef]
) -> None:
    settings = settings_in(tmp_path)
    runner = JobRunner(settings, read_pieces=PieceReader(settings.log))
    frame = bytearray()
    encode_job_into(job(*refs), frame)
    named = decode_job(frame)
    assert isinstance(named, ReadJob)

    assert runner.read(named) == runner.read(job(FIRST, SECOND))
    assert runner.read(job(refs[0], SECOND)) == runner.read(job(FIRST, SECOND))
    assert runner.read_packed(named) == runner.read_packed(job(FIRST, SECOND))


async def test_spans_that_cannot_be_read_are_asked_for(tmp_path: Path, refs: list[SpanRef]) -> None:
    settings = settings_in(tmp_path)
    there = JobRunner(settings, read_pieces=PieceReader(settings.log))
    elsewhere = settings_in(tmp_path / "none")
    missing = [
        (there, job(refs[0], SpanRef(0, 7, 0, 9))),
        (JobRunner(settings), job(*refs)),
        (JobRunner(elsewhere, read_pieces=PieceReader(elsewhere.log)), job(*refs)),
        (
            JobRunner(
                settings, read_pieces=PieceReader(settings_in(tmp_path, log={"kind": "memory"}).log)
            ),
            job(*refs),
        ),
    ]

    for runner, each in missing:
        assert runner.read(each).unread == SPANS_MISSING
        assert runner.read_packed(each).unread == SPANS_MISSING


# --- a glance at an open trace answers only a suspicion --------------------------------------------------------------


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


# --- spans that another program wrote to the log are redacted when they are read -------------------------------------


SETTINGS = {
    "embedder": {"kind": "none"},
    "redaction": {"patterns": {"email": "email"}, "key": "a secret of ours"},
}


def read(config: Config) -> tuple[str, str]:
    job = ReadJob(
        trace_id=bytes.fromhex(asking.trace_id("jane@example.org")),
        pieces=(asking.asked("jane@example.org", "I am jane@example.org"),),
        closed="root_ended",
    )
    trace = JobRunner(reader_settings(config), plan_from(config)).read(job)
    return trace.session_id, trace.input or ""


def test_a_worker_reads_no_secret() -> None:
    session_id, text = read(Config.model_validate(SETTINGS))

    assert text == "I am [email]"
    assert session_id.startswith("[email]#")


def test_a_worker_process_has_the_key() -> None:
    """Its configuration comes as JSON: with a masked key it would name sessions otherwise than the receiver does."""
    config = Config.model_validate(SETTINGS)

    arrived = Config.model_validate_json(config.model_dump_json())

    assert read(arrived) == read(config)
    assert "a secret of ours" not in str(config.model_dump())
