"""Which sessions a list has: the parameters of its address, what is found, and the file for a spreadsheet."""

import csv
import io

import pytest

from collector.api.session_filter import filter_of, sort_of
from collector.api.session_list import SessionFilter
from evaluators.model import ToolCall
from tests.support import api_records as make
from tests.support.api_stand import NewStand, Stand
from tests.support.table import for_each

NOW = 1_700_000_000.0
RUNAWAYS = frozenset({("shop", "s-2"), ("shop", "s-1")})


def asked(**given: str) -> tuple[SessionFilter, list[str]]:
    return filter_of(given, now=NOW, running_away=lambda: RUNAWAYS)


def test_every_parameter_is_understood() -> None:
    found, wrong = asked(
        service="shop",
        agent="clerk",
        version="2",
        q=" kettle ",
        tool="find_order",
        model="gpt-4o",
        user="acme",
        attribute="plan=pro=x",
        status="error",
        failed="tool_correctness",
        min_reliability="0.25",
        max_reliability="1",
        min_cost="0.5",
        min_seconds="90",
    )

    assert wrong == []
    assert found == SessionFilter(
        service="shop",
        agent="clerk",
        version="2",
        text="kettle",
        tool="find_order",
        model="gpt-4o",
        user="acme",
        attribute=("plan", "pro=x"),
        status="error",
        failed="tool_correctness",
        least=0.25,
        most=1.0,
        cost=0.5,
        seconds=90.0,
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30m", NOW - 1_800),
        ("24h", NOW - 86_400),
        ("7d", NOW - 7 * 86_400),
        ("999999d", 0),
        ("1690000000.5", 1_690_000_000.5),
        ("2023-11-14T22:13:20", NOW),
        ("2023-11-14T22:13:20Z", NOW),
        ("2023-11-14T23:13:20+01:00", NOW),
        ("2023-11-14", 1_699_920_000),
    ],
)
def test_a_time_is_a_moment_or_a_length_back_from_now(text: str, seconds: float) -> None:
    found, wrong = asked(since=text)

    assert (found.since, wrong) == (round(seconds * 1e6), [])


@for_each(
    ("name", "text"),
    [
        ("since", "yesterday"),
        ("until", "99999999999999999999"),
        ("until", "²"),
        ("since", "-5"),
        ("min_reliability", "2"),
        ("max_reliability", "nan"),
        ("min_cost", "-1"),
        ("min_seconds", "inf"),
        ("status", "bad"),
        ("attribute", "plan"),
        ("attribute", "=pro"),
    ],
)
def test_what_is_not_understood_asks_for_nothing_and_is_said(name: str, text: str) -> None:
    found, wrong = asked(**{name: text})

    assert found == SessionFilter()
    assert len(wrong) == 1
    assert wrong[0].startswith(f"{name}: expected ")


def test_running_away_names_its_sessions() -> None:
    found, _ = asked(status="runaway")

    assert found == SessionFilter(names=[("shop", "s-1"), ("shop", "s-2")])


def test_an_unknown_order_is_the_usual_one_and_is_said() -> None:
    assert sort_of({}, "worst") == ("worst", [])
    assert sort_of({"sort": "cost"}, "worst") == ("cost", [])
    name, wrong = sort_of({"sort": "id; DROP TABLE sessions"}, "worst")
    assert name == "worst"
    assert wrong[0].startswith("sort: expected one of worst, newest")


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
