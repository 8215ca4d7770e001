"""What the API and the page show of a trace that is still open and runs away, and once it has closed."""

from typing import Any

from collector.records.signal import Signal
from evaluators.model import Trace
from tests.support import api_records as make
from tests.support.api_stand import Stand
from tests.support.standings import running_away

MARK = "running away now"


def found(of: Trace, **changes: Any) -> Signal:
    fields: dict[str, Any] = {"score": 0.0, "success": False, "final": False, "closed": None}
    return make.signal(of, "runaway", **{**fields, **changes})


async def test_an_open_trace_is_marked_wherever_it_stands(stand: Stand) -> None:
    of = make.trace(1)
    taken = stand.take_signals(found(of))
    stand.standings = running_away(of)

    pages = [
        await stand.text(path)
        for path in ("/", "/sessions", f"/session?id={of.session_id}", f"/trace?id={of.trace_id}")
    ]
    (agent,) = await stand.items("agents")

    assert len(taken.signals) == 1, "the live stream has it"
    assert [MARK in page for page in pages] == [True] * 4
    assert pages[0].count(MARK) == 2, "on top, and at the agent"
    assert [each["trace_id"] for each in agent["runaways"]] == [of.trace_id]


async def test_the_final_outcome_wins_at_its_revision_whichever_comes_last(
    stand: Stand,
) -> None:
    of = make.trace(1)
    final = found(of, final=True, closed="idle", id="f" * 32)
    stand.take_traces(of)

    taken = [
        len(stand.take_signals(each).signals)
        for each in (found(of), final, found(of, id="e" * 32), found(of, revision=1, id="d" * 32))
    ]
    page = await stand.text(f"/trace?id={of.trace_id}")

    assert taken == [1, 1, 0, 1]
    assert MARK in page, "late spans opened it again"


async def test_a_trace_that_named_its_session_at_its_end_leaves_no_session_of_its_own(
    stand: Stand,
) -> None:
    of = make.trace(1)
    stand.take_signals(found(of, session_id=of.trace_id, session_source="trace"))
    before = await stand.items("sessions")

    stand.take_traces(of)
    after = await stand.items("sessions")
    (agent,) = await stand.items("agents")

    assert [each["session_id"] for each in before] == [of.trace_id]
    assert [each["session_id"] for each in after] == [of.session_id]
    assert agent["traces"] == 1
