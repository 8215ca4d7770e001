"""The files that the page of a trace offers are read back by what they are for."""

from pathlib import Path

import pytest

from collector.config.strict_yaml import parse
from collector.service.recordings import requests
from evaluators.expectations import Expectations
from evaluators.model import ToolCall, Trace
from tests.support import api_records as make
from tests.support.api_stand import NewStand, Stand


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
