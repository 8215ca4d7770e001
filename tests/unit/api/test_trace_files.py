"""What the page of a trace offers: its files, and spans that its record names."""

from pathlib import Path
from typing import Any

import pytest

from collector.config.strict_yaml import parse
from collector.log.port import SPANS, Position
from collector.records.codec import encode
from collector.records.span_refs import Piece, SpanRef
from collector.records.traces import TraceRecord
from collector.service.recordings import requests
from evaluators.expectations import Expectations
from evaluators.model import ToolCall, Trace
from tests.support import api_records as make
from tests.support.api_stand import NewStand, Stand
from tests.support.faulty_log import START
from tests.support.keeping_log import KeepingLog
from tests.support.ticking import SetClock


async def test_the_recording_holds_the_requests_as_they_came(stand: Stand, tmp_path: Path) -> None:
    of = make.trace(1)
    stand.take_traces(of)

    answer = await stand.get(f"/trace/recording?id={of.trace_id}")

    file = tmp_path / "of.otlp"
    file.write_bytes(answer.content)
    assert tuple(requests(file)) == make.pieces(of)
    assert answer.headers["content-disposition"] == (
        f'attachment; filename="trace-{of.trace_id}.otlp"'
    )


STRANGE = "- a: {b}\n\u2028 'x' \"y\" # no\ttab \u00e9 \U0001f600 \x85 %TAG !!str |\n\n  end "


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"task_id": "refund-1"}, {"task": "refund-1", "input": "question 1"}),
        ({"input": f"  {STRANGE}"}, {"input": STRANGE.strip()}),
        ({"input": None}, {"trace_id": make.trace(1).trace_id}),
        ({"output": STRANGE}, {"input": "question 1"}),
    ],
)
async def test_the_case_loads_and_fits_the_trace(
    stand: Stand, changes: dict[str, str | None], match: dict[str, str]
) -> None:
    same = {"city": "Oslo", "strange": STRANGE, "deep": [{"n": 1.5e300, "yes": True, "no": None}]}
    calls = (
        ToolCall(name="lookup", arguments=same, error="timeout"),
        ToolCall(name="lookup", arguments=same, result="rain"),
        ToolCall(name="lookup", arguments=same, result="rain"),
        ToolCall(name="tell", arguments="as text"),
    )
    of = make.trace(1, tool_calls=calls, **changes)
    stand.take_traces(of)

    text = await stand.text(f"/trace/case?id={of.trace_id}")

    entries = parse(text)
    assert entries[0]["match"] == match
    expected = Expectations(entries).find(of, None)
    assert expected is not None
    assert expected.output == of.output
    assert [(tool.name, tool.arguments) for tool in expected.tools or ()] == [
        ("lookup", same),
        ("lookup", same),
        ("tell", None),
    ]
    assert "&id" not in text


@pytest.mark.parametrize("file", ["recording", "case"])
async def test_there_is_no_file_where_no_content_is_to_be_shown(
    new_stand: NewStand, file: str
) -> None:
    stand = new_stand("redaction.content=drop")
    of: Trace = make.trace(1)
    stand.take_traces(of)

    answer = await stand.get(f"/trace/{file}?id={of.trace_id}")
    page = await stand.get(f"/trace?id={of.trace_id}")

    assert answer.status_code == 404
    assert "There is nothing to download" in answer.text
    assert "Oslo" not in answer.text + page.text
    assert "/trace/recording" not in page.text


async def test_secrets_that_another_program_wrote_to_the_log_are_in_no_file(
    new_stand: NewStand,
) -> None:
    stand = new_stand("redaction.patterns={rain: 'rain <b>soon'}")
    of = make.trace(1)
    stand.take_traces(of)

    recording = await stand.get(f"/trace/recording?id={of.trace_id}")
    page = await stand.get(f"/trace?id={of.trace_id}")

    assert recording.status_code == 200
    assert b"execute_tool lookup" in recording.content
    assert b"soon" not in recording.content
    assert "soon" not in page.text


@pytest.mark.parametrize("file", ["recording", "case"])
@pytest.mark.parametrize(("address", "status"), [("", 400), ("?id=", 400), ("?id=no-such", 404)])
async def test_a_file_of_no_trace_is_a_page(
    stand: Stand, file: str, address: str, status: int
) -> None:
    answer = await stand.get(f"/trace/{file}{address}")

    assert answer.status_code == status
    assert "<main" in answer.text


@pytest.fixture
def stand(new_stand: NewStand) -> Stand:
    return new_stand(log=KeepingLog(clock=SetClock(START)))


async def shown(stand: Stand, *spans: Piece) -> dict[str, Any]:
    of = make.trace()
    stand.take_traces(encode(TraceRecord(trace=of, spans=spans, revision=0, seen=make.START)))
    answer = await stand.get(f"/api/v1/traces/{of.trace_id}")
    assert answer.status_code == 200
    return answer.json()


async def test_named_spans_are_shown_like_held_ones(stand: Stand) -> None:
    (piece,) = make.pieces(make.trace())
    other = make.pieces(make.trace(2))[0]
    stand.log.append(SPANS, other + piece)

    held = await shown(stand, piece)
    named = await shown(stand, SpanRef(0, 0, len(other), len(other) + len(piece)))

    assert len(held["spans"]) == 2
    assert named["spans"] == held["spans"]


async def test_a_part_of_a_trace_is_not_shown_as_the_trace(stand: Stand) -> None:
    (piece,) = make.pieces(make.trace())
    stand.log.append(SPANS, piece)
    stand.log.append(SPANS, piece)
    stand.log.expire(Position(SPANS, 0, 0))

    found = await shown(stand, SpanRef(0, 0, 0, len(piece)), SpanRef(0, 1, 0, len(piece)))

    assert found["spans"] == []
    assert found["trace"]["trace_id"] == make.trace().trace_id


async def test_spans_that_the_log_does_not_have_are_none(stand: Stand) -> None:
    (piece,) = make.pieces(make.trace())
    found = await shown(stand, SpanRef(0, 7, 0, len(piece)))

    assert found["spans"] == []
