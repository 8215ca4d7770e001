"""A trace that is only a piece of another one's turn stands in no list, and never in the place of that turn."""

from typing import Any

import pytest

from tests.support import api_records as make
from tests.support.api_stand import Stand


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
