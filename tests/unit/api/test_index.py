"""The index: full, damaged, closed; what the page of a trace offers of it."""

import random
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
from tests.support.clocks import SetClock
from tests.support.faulty_log import START
from tests.support.keeping_log import KeepingLog
from tests.support.table import for_each


def test_a_full_index_evicts_and_never_starts_empty(new_stand: NewStand) -> None:
    """Words that no two traces share: what is evicted takes the most room in the search."""
    stand, draw, count = new_stand("serve.index=4MiB"), random.Random(7), 3_000
    for first in range(0, count, 200):
        stand.take_traces(
            *(
                make.trace(
                    number + 1,
                    session_id=f"s-{number}",
                    input=" ".join(f"{draw.getrandbits(30):x}" for _ in range(60)),
                    output=" ".join(f"{draw.getrandbits(12):x}" for _ in range(60)),
                )
                for number in range(first, first + 200)
            )
        )
    with stand.api._index.reading() as reading:
        execute = reading.connection.execute
        kept = {row for (row,) in execute("SELECT id FROM traces").fetchall()}
        found = {row for (row,) in execute("SELECT rowid FROM texts ('support OR 1*')").fetchall()}

    evicted = [
        stand.counted("spanwise_index_evicted_total", kind=kind, reason="index_full")
        for kind in ("index", "session")
    ]
    assert evicted == [0, count - len(kept)]
    assert 500 < len(kept) < count
    assert set() < found <= kept


@pytest.mark.parametrize(
    ("change", "page"),
    [
        ("outcomes SET packed = x'ff'", "/agent?service=support-bot&agent=planner"),
        ("sessions SET coverage = 'half' WHERE coverage IS NOT NULL", "/"),
    ],
)
async def test_a_damaged_entry_is_damage(filled_stand: Stand, change: str, page: str) -> None:
    with filled_stand.api._index.file.writing() as (connection, _):
        connection.execute(f"UPDATE {change}")

    assert (await filled_stand.get(page)).status_code == 503
    assert filled_stand.api._index._is_damaged


@for_each("path", ["/api/v1/sessions", "/api/v1/agents", "/"])
async def test_a_closed_index_refuses_for_the_moment(stand: Stand, path: str) -> None:
    """While it is opened again: that is not a fault of the service."""
    stand.close()

    answer = await stand.get(path)
    assert (answer.status_code, "ask in a moment" in answer.text) == (503, True)


def test_a_mistake_of_a_page_is_no_damage(filled_stand: Stand) -> None:
    def page() -> None:
        with filled_stand.api._index.reading() as reader:
            assert reader.names()
            raise ValueError("of a page")

    with pytest.raises(ValueError, match="of a page"):
        page()

    assert not filled_stand.api._index._is_damaged


async def listed(stand: Stand) -> tuple[Any, Any]:
    sessions = await stand.items("sessions")
    agents = await stand.items("agents")
    return [each["session_id"] for each in sessions], [each["agent"] for each in agents]


async def test_a_piece_makes_no_session_and_no_agent(stand: Stand) -> None:
    piece = make.trace(session_id="piece", agent="server", is_part=True)
    stand.take_traces(piece)
    assert await listed(stand) == ([], [])
    stand.take_traces(make.trace(2, session_id="turn", agent="bot"))
    assert await listed(stand) == (["turn"], ["bot"])


@pytest.mark.parametrize("turn_first", [False, True])
@pytest.mark.parametrize("is_part", [False, True])
async def test_what_a_command_sent_does_not_take_the_place_of_the_turn_that_ran_it(
    stand: Stand, turn_first: bool, is_part: bool
) -> None:
    """Both have one trace id: the turn began first, whichever arrives first."""
    turn = make.trace(1, session_id="turn", agent="bot")
    later = turn.start_time_unix_nano + 1
    command = make.trace(
        1, session_id="command", agent="server", start_time_unix_nano=later, is_part=is_part
    )
    arriving = [(turn, 0), (command, 0), (command, 1)]
    for trace, revision in arriving if turn_first else [*arriving[1:], arriving[0]]:
        stand.take_traces(make.trace_value(trace, revision=revision))

    found = await stand.json(f"traces/{turn.trace_id}")
    assert found["trace"]["session_id"] == "turn"
    assert "turn" in (await listed(stand))[0]


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


async def test_there_is_no_file_where_no_content_is_to_be_shown(new_stand: NewStand) -> None:
    stand = new_stand("redaction.content=drop")
    of: Trace = make.trace(1)
    stand.take_traces(of)

    page = await stand.text(f"/trace?id={of.trace_id}")

    assert "/trace/recording" not in page
    for file in ("recording", "case"):
        answer = await stand.get(f"/trace/{file}?id={of.trace_id}")
        assert (answer.status_code, "There is nothing to download" in answer.text) == (404, True)
        assert "Oslo" not in answer.text + page


async def test_secrets_that_another_program_wrote_to_the_log_are_in_no_file(
    new_stand: NewStand,
) -> None:
    stand = new_stand("redaction.patterns={rain: 'rain <b>soon'}")
    stand.take_traces(make.trace(1))

    recording = await stand.get(f"/trace/recording?id={1:032x}")

    assert recording.status_code == 200
    assert b"execute_tool lookup" in recording.content
    assert b"soon" not in recording.content
    assert "soon" not in await stand.text(f"/trace?id={1:032x}")


@for_each("file", ["recording", "case"])
@for_each(("address", "status"), [("", 400), ("?id=", 400), ("?id=no-such", 404)])
async def test_a_file_of_no_trace_is_a_page(
    stand: Stand, file: str, address: str, status: int
) -> None:
    answer = await stand.get(f"/trace/{file}{address}")

    assert (answer.status_code, "<main" in answer.text) == (status, True)


@pytest.fixture
def keeping(new_stand: NewStand) -> Stand:
    """Its log has records that expire."""
    return new_stand(log=KeepingLog(clock=SetClock(START)))


async def shown(stand: Stand, *spans: Piece) -> dict[str, Any]:
    of = make.trace()
    stand.take_traces(encode(TraceRecord(trace=of, spans=spans, revision=0, seen=make.START)))
    answer = await stand.get(f"/api/v1/traces/{of.trace_id}")
    assert answer.status_code == 200
    return answer.json()


async def test_named_spans_are_shown_like_held_ones(keeping: Stand) -> None:
    (piece,) = make.pieces(make.trace())
    other = make.pieces(make.trace(2))[0]
    keeping.log.append(SPANS, other + piece)

    held = await shown(keeping, piece)
    named = await shown(keeping, SpanRef(0, 0, len(other), len(other) + len(piece)))

    assert len(held["spans"]) == 2
    assert named["spans"] == held["spans"]


async def test_a_part_of_a_trace_is_not_shown_as_the_trace(keeping: Stand) -> None:
    (piece,) = make.pieces(make.trace())
    keeping.log.append(SPANS, piece)
    keeping.log.append(SPANS, piece)
    keeping.log.expire(Position(SPANS, 0, 0))

    for expired in (0, 7):
        found = await shown(keeping, *(SpanRef(0, at, 0, len(piece)) for at in (expired, 1)))

        assert found["spans"] == []
        assert found["trace"]["trace_id"] == make.trace().trace_id
