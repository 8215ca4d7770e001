"""Agents are shown with the numbers of the gauges, and with what changed of them in plain words."""

import pytest

from collector.api.page.agent_rows import change
from collector.records.standing import Standing
from tests.support import api_records as make
from tests.support.api_stand import NewStand, Stand
from tests.support.standings import drop, standings

AGENT = "/agent?service=support-bot&agent=planner"


@pytest.fixture
def stand(new_stand: NewStand) -> Stand:
    """An agent with two sessions, whose scores have a mean of their own."""
    made = new_stand()
    for number, score in ((1, 0.8), (2, 0.2)):
        made.take_session(number, score)
    return made


async def test_an_agents_numbers_are_those_of_the_gauges(stand: Stand) -> None:
    stand.standings = standings(0.14, drop())

    (agent,) = await stand.items("agents")
    page = await stand.text("/")

    assert (agent["reliability"], agent["consistency"], agent["sessions"]) == (0.14, None, 63)
    assert agent["window"] == {
        "reliability": {"mean": 0.14, "lower": 0.125, "upper": 0.5, "samples": 63},
        "consistency": None,
    }
    assert agent["drops"] == [
        {
            "evaluator": "agent_reliability",
            "scope": "session",
            "direction": "worse",
            "since": agent["drops"][0]["since"],
            "mean_rank": 0.21,
            "sessions": 63,
            "strong": False,
            "cause": None,
            "worst": [],
            "looked_at": None,
        }
    ]
    assert "<b>0.14</b>" in page
    assert "<b>0.50</b>" not in page, "the mean of the sessions in the index"


async def test_what_the_exporter_does_not_know_is_null_and_never_another_number(
    stand: Stand,
) -> None:
    """Before its windows are read back, and for a version that has ended: the page shows its last sessions."""
    ended = Standing(service="support-bot", agent="planner")
    for known in ({}, {("support-bot", "planner"): ended}):
        stand.standings = known

        (agent,) = await stand.items("agents")

        assert [agent[key] for key in ("reliability", "consistency", "sessions")] == [None] * 3
        assert agent["traces"] == 2
        page = await stand.text("/")
        assert ("<b>0.50</b>" in page, " ended<" in page) == (bool(known),) * 2


async def test_the_page_tells_of_a_change_in_either_direction(stand: Stand) -> None:
    stand.standings = standings(
        0.14, drop(), drop(evaluator="task_agreement", direction="better", mean_rank=0.8)
    )

    overview = await stand.text("/")
    own = await stand.text(AGENT)

    since = make.START
    for page in (overview, own):
        assert f"worse than its own past since {stand_time(since)}" in page
        assert "mean rank .21 where .5 means no change, 63 sessions" in page
        assert "better than its own past since" in page
    assert "<b>task agreement</b>: better than its own past since" in own


def stand_time(seconds: float) -> str:
    return change(drop(since=seconds))["what"].partition("since ")[2].partition(": ")[0]


def test_work_is_described_as_more_or_less_of_it() -> None:
    more = change(drop(evaluator="work_baseline"))
    less = change(drop(evaluator="work_baseline", direction="better", since=0.0))

    assert more["what"].startswith("more work than in its own past since ")
    assert more["is_bad"]
    assert less["is_bad"]
    assert not change(drop(direction="better"))["is_bad"]
    assert less["what"].startswith("less work than in its own past since 1970-01-01 00:00: ")


async def test_an_agents_own_address_shows_its_bounds_and_the_sessions_behind_them(
    stand: Stand,
) -> None:
    stand.standings = standings(0.14)
    other = make.trace(9, session_id="s-9", agent="writer")
    stand.take_traces(other)

    overview = await stand.text("/")
    led = await stand.get("/?service=support-bot&agent=planner")
    own = await stand.text(AGENT)
    unknown = await stand.get("/agent?service=support-bot&agent=nobody")
    nobody = await stand.text("/?agent=nobody")

    assert "0.12 \u2013 0.50" in overview
    assert "between 0.12 and 0.50 (95 %), 63 sessions" in own
    assert "writer" in overview
    assert "writer" not in own
    assert (led.status_code, led.headers["location"]) == (307, AGENT)
    assert unknown.status_code == 404
    assert "No agent fits" in nobody
    assert "Nothing has arrived" not in nobody
