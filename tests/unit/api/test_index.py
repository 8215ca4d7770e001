"""The index: full, damaged, closed, and with traces that are a piece of another one."""

import random
from pathlib import Path
from typing import Any

import pytest

from collector.api.families import ApiFamilies
from collector.api.index import Index
from collector.base.telemetry import Telemetry
from tests.support import api_records as make
from tests.support.api_stand import Stand

COUNT = 3_000


def filled(index: Index) -> None:
    draw = random.Random(7)
    for first in range(0, COUNT, 200):
        traces = [
            make.trace(
                number + 1,
                session_id=f"s-{number}",
                input=" ".join(f"{draw.getrandbits(30):x}" for _ in range(60)),
                output=" ".join(f"{draw.getrandbits(12):x}" for _ in range(60)),
            )
            for number in range(first, first + 200)
        ]
        values = [make.trace_value(each) for each in traces]
        index.take_traces(make.trace_records(*values, first=first))


def test_a_full_index_evicts_and_never_starts_empty(tmp_path: Path) -> None:
    """Words that no two traces share: what is evicted takes the most room in the search."""
    telemetry = Telemetry()
    index = Index(
        tmp_path, size=4 << 20, max_traces=10, content=True, families=ApiFamilies(telemetry)
    )
    filled(index)
    with index.reading() as reading:
        execute = reading.connection.execute
        kept = {row for (row,) in execute("SELECT id FROM traces").fetchall()}
        found = {row for (row,) in execute("SELECT rowid FROM texts ('support OR 1*')").fetchall()}
    index.close()

    evicted = [
        telemetry.registry.get_sample_value(
            "spanwise_index_evicted_total", {"kind": kind, "reason": "index_full"}
        )
        for kind in ("index", "session")
    ]
    assert evicted == [None, COUNT - len(kept)]
    assert 500 < len(kept) < COUNT
    assert found
    assert found <= kept


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


@pytest.mark.parametrize("path", ["/api/v1/sessions", "/api/v1/agents", "/"])
async def test_a_closed_index_refuses_for_the_moment(stand: Stand, path: str) -> None:
    """While it is opened again: that is not a fault of the service."""
    stand.close()

    answer = await stand.get(path)
    assert answer.status_code == 503
    assert "ask in a moment" in answer.text


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
