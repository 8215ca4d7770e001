"""The list of sessions by what they took, and as a file for a spreadsheet."""

import csv
import io

import pytest

from evaluators.model import ToolCall
from tests.support import api_records as make
from tests.support.api_stand import NewStand, Stand


@pytest.fixture
def stand(new_stand: NewStand) -> Stand:
    made = new_stand()
    for number, cost in ((1, 0.02), (2, 1.5), (3, None)):
        made.take_session(
            number,
            0.5,
            cost_usd=cost,
            input="=HYPERLINK(1)" if number == 1 else 'say "hi", please',
            end_time_unix_nano=int((make.START + number + 10 * number) * 1e9),
        )
    return made


async def chosen(stand: Stand, asked: str) -> set[str]:
    items = await stand.items(f"sessions?{asked}")
    return {each["session_id"] for each in items}


async def test_sessions_are_chosen_by_cost_and_length(stand: Stand) -> None:
    assert await chosen(stand, "min_cost=0.02") == {"s-1", "s-2"}
    assert await chosen(stand, "min_cost=1") == {"s-2"}
    assert await chosen(stand, "min_seconds=15") == {"s-2", "s-3"}
    assert await chosen(stand, "min_seconds=15&min_cost=1") == {"s-2"}
    page = await stand.text("/sessions?min_cost=1")
    assert "s-2" in page
    assert "s-1" not in page
    assert "cost from (USD) <b>1</b>" in page


async def test_sessions_are_chosen_by_the_tool_the_model_and_the_user_of_any_of_their_traces(
    stand: Stand,
) -> None:
    first = make.trace(
        11,
        session_id="s-1",
        tool_calls=(ToolCall(name="find_order"), ToolCall(name="find_order")),
        models=("gpt-4o-mini",),
        user_id="acme",
        attributes={"plan": "pro", "region": "eu"},
    )
    other = make.trace(
        12,
        session_id="s-2",
        tool_calls=(ToolCall(name="find"),),
        models=("gpt-4o",),
        attributes={"plan": "free", "other": "pro"},
    )
    for each in (first, other):
        stand.take_traces(each)

    assert await chosen(stand, "tool=find_order") == {"s-1"}
    assert await chosen(stand, "tool=find") == {"s-2"}
    assert await chosen(stand, "model=gpt-4o") == {"s-2"}
    assert await chosen(stand, "user=acme&tool=find_order&model=gpt-4o-mini") == {"s-1"}
    assert await chosen(stand, "user=acme&tool=find") == set()
    assert await chosen(stand, "attribute=plan%3Dpro") == {"s-1"}
    assert await chosen(stand, "attribute=plan=free&tool=find") == {"s-2"}
    assert await chosen(stand, "attribute=other=free") == set()
    for word in ("tool", "model", "user", "plan"):
        assert await chosen(stand, f"q={word}") == set(), "no word of what was said"
    assert await chosen(stand, "tool=lookup&q=please") == {"s-2", "s-3"}
    page = await stand.text("/sessions?tool=find_order")
    assert "tool <b>find_order</b>" in page

    trace = await stand.text(f"/trace?id={first.trace_id}")
    assert '<dt>plan</dt><dd><a href="/sessions?attribute=plan%3Dpro">pro</a></dd>' in trace
    assert '<a href="/sessions?user=acme">acme</a>' in trace

    changed = make.trace(11, session_id="s-1", tool_calls=(ToolCall(name="refund"),))
    stand.take_traces(make.trace_value(changed, revision=1))
    assert await chosen(stand, "tool=find_order") == set()
    assert await chosen(stand, "tool=refund") == {"s-1"}


async def test_the_list_is_a_file_for_a_spreadsheet(stand: Stand) -> None:
    answer = await stand.get("/api/v1/sessions?format=csv&sort=newest&min_cost=0.01")

    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["cache-control"] == "no-store"
    assert [row["session_id"] for row in rows] == ["s-2", "s-1"]
    assert rows[0]["question"] == 'say "hi", please'
    assert rows[1]["question"] == "'=HYPERLINK(1)", "no formula"
    assert (rows[0]["cost_usd"], rows[0]["consistency"]) == ("1.5", "")
    assert (await stand.get("/api/v1/sessions?format=xml")).status_code == 422


async def test_the_page_leads_to_the_file_of_what_it_shows(stand: Stand) -> None:
    page = await stand.text("/sessions?agent=planner&sort=newest")

    address = "/api/v1/sessions?agent=planner&amp;sort=newest&amp;format=csv&amp;limit=500"
    assert f'href="{address}"' in page
