"""A job may name its spans instead of holding them: who cannot read them says so."""

from pathlib import Path
from typing import Any

import pytest

from collector.base.clock import wall
from collector.base.telemetry import Telemetry
from collector.config.tree import Config
from collector.log.disk.disk_log import DiskLog
from collector.log.port import SPANS, New
from collector.reading.port import (
    SPANS_MISSING,
    ReaderSettings,
    ReadJob,
    decode_job,
    encode_job_into,
    reader_settings,
)
from collector.reading.worker import JobRunner, PieceReader
from collector.records.span_refs import Piece, SpanRef
from tests.support.spans import child, request, root, trace_id

FIRST, SECOND, OTHER = request(root()), request(child(2)), request(root(trace=2))


def settings_in(folder: Path, **more: Any) -> ReaderSettings:
    config = {"embedder": {"kind": "none"}, "data_dir": str(folder), **more}
    return reader_settings(Config.model_validate(config))


def job(*pieces: Piece) -> ReadJob:
    return ReadJob(trace_id=trace_id(1), pieces=pieces, closed="idle")


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
