"""A trace that is only a piece of another one's turn stands in no list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support import api_records as make
from tests.support.api_stand import Stand


async def listed(stand: Stand) -> tuple[Any, Any]:
    sessions = (await stand.get("/api/v1/sessions")).json()["items"]
    agents = (await stand.get("/api/v1/agents")).json()["items"]
    return [each["session_id"] for each in sessions], [each["agent"] for each in agents]


async def test_a_piece_makes_no_session_and_no_agent(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    piece = make.trace(session_id="piece", agent="server", is_part=True)
    stand.take_traces(make.trace_value(piece))
    assert await listed(stand) == ([], [])
    stand.take_traces(make.trace_value(make.trace(2, session_id="turn", agent="bot")))
    assert await listed(stand) == (["turn"], ["bot"])
    stand.close()
