"""What the overview puts first and how it says it; what of it the page of an agent and the API keep."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from collector.api.about import About
from collector.api.answers import RequestRefused
from collector.api.page.agent import MOMENTS, Moment, nearest, offered
from collector.api.page.agent_rows import change
from collector.api.page.overview import Badge, badges
from collector.records.standing import Standing, WatchedScores
from tests.support import api_records as make
from tests.support.api_stand import NewStand, Stand, filled
from tests.support.standings import drop, running_away, standings
from tests.support.table import for_each

AGENT = "/agent?service=support-bot&agent=planner"


@pytest.fixture
def stand(new_stand: NewStand) -> Stand:
    """Three agents: planner was seen last, and its two scores have a mean of their own, .5; looper longest ago."""
    made = new_stand()
    for number, agent in enumerate(("looper", "writer", "planner"), 1):
        made.take_session(number, 0.8, agent=agent)
    made.take_session(4, 0.2)
    return made


async def planner(stand: Stand) -> dict[str, Any]:
    """What the API says of it."""
    return next(each for each in await stand.items("agents") if each["agent"] == "planner")


async def test_the_empty_page_names_the_ports_that_were_bound(new_stand: NewStand) -> None:
    stand = new_stand("receiver.grpc.port=0", "receiver.http.port=0")
    stand.ports = (14317, 14318)

    page = await stand.text("/")

    assert "://127.0.0.1:14317 " in page
    assert "://127.0.0.1:14318 " in page


async def test_what_runs_away_comes_before_what_got_worse_and_both_before_the_rest(
    stand: Stand,
) -> None:
    stand.standings = {**standings(0.14, drop()), **running_away(make.trace(1, agent="looper"))}

    top, _, table = (await stand.text("/")).partition('<table id="agents">')

    names = re.compile(r'class="name" href="/agent[^"]*">(\w+)</a>')
    assert names.findall(top) == ["looper", "planner"]
    assert names.findall(table) == ["looper", "planner", "writer"]


async def test_an_alarm_speaks_of_the_reliability_first_and_names_the_others_in_a_line(
    stand: Stand,
) -> None:
    others = [drop(evaluator="agent_consistency", mean_rank=0.3), drop(evaluator="confidence")]
    stand.standings = standings(0.14, *others, drop(mean_rank=0.4))

    page = await stand.text("/")
    own = await stand.text(AGENT)

    urgent = page[page.index('class="urgent"') : page.index('<table id="agents">')]
    assert urgent.count("<li>") == 1
    assert urgent.index("<b>agent reliability</b>") < urgent.index("mean rank .40 where .5")
    for shown in (urgent, own):
        assert re.findall(r"<b>([\w ]+)</b> (\.\d+)</span>", shown) == [
            ("confidence", ".21"),
            ("agent consistency", ".30"),
        ]
    assert re.findall(r'<li class="poor"><b>([\w ]+)</b>', own) == ["agent reliability"]


# --- numbers, drops and what changed ---


async def test_a_drop_is_in_the_api_and_the_pages_show_the_number_of_the_gauge(
    stand: Stand,
) -> None:
    better = drop(evaluator="task_agreement", direction="better", mean_rank=0.8)
    stand.standings = standings(0.14, drop(), better)

    agent = await planner(stand)
    overview, own = await stand.text("/"), await stand.text(AGENT)

    assert agent["drops"][0] == {
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
    assert "<b>0.14</b>" in overview
    assert "<b>0.50</b>" not in overview, "the mean of the sessions in the index"
    since = change(drop(since=make.START))["what"].partition("since ")[2].partition(": ")[0]
    for page in (overview, own):
        assert f"worse than its own past since {since}" in page
        assert "mean rank .21 where .5 means no change, 63 sessions" in page
        assert "better than its own past since" in page


async def test_what_the_exporter_does_not_know_is_null_and_never_another_number(
    stand: Stand,
) -> None:
    """Before its windows are read back, and for a version that has ended: the page shows its last sessions."""
    ended = Standing(service="support-bot", agent="planner")
    for known in ({}, {("support-bot", "planner"): ended}):
        stand.standings = known

        agent = await planner(stand)

        assert [agent[key] for key in ("reliability", "consistency", "sessions")] == [None] * 3
        assert agent["traces"] == 2
        page = await stand.text("/")
        assert ("<b>0.50</b>" in page, " ended<" in page) == (bool(known),) * 2


@for_each(
    ("direction", "evaluator", "says", "is_bad"),
    [
        ("worse", "work_baseline", "more work than in its own past since ", True),
        (
            "better",
            "work_baseline",
            "less work than in its own past since 1970-01-01 00:00: ",
            True,
        ),
        ("better", "agent_reliability", "better than its own past since ", False),
    ],
)
def test_work_is_described_as_more_or_less_of_it_and_both_are_bad(
    direction: Any, evaluator: str, says: str, is_bad: bool
) -> None:
    found = change(drop(evaluator=evaluator, direction=direction, since=0.0))

    assert found["what"].startswith(says)
    assert found["is_bad"] == is_bad


async def test_an_agents_own_address_shows_its_bounds_and_the_sessions_behind_them(
    stand: Stand,
) -> None:
    stand.standings = standings(0.14)

    overview, own = await stand.text("/"), await stand.text(AGENT)
    led = await stand.get("/?service=support-bot&agent=planner")
    unknown = await stand.get("/agent?service=support-bot&agent=unknown")
    empty = await stand.text("/?agent=unknown")

    assert "0.12 \u2013 0.50" in overview
    assert "between 0.12 and 0.50 (95 %), 63 sessions" in own
    assert ("writer" in overview, "writer" in own) == (True, False)
    assert (led.status_code, led.headers["location"]) == (307, AGENT)
    assert unknown.status_code == 404
    assert "No agent fits" in empty
    assert "Nothing has arrived" not in empty


async def test_a_drop_that_is_over_stays_marked_on_the_page_of_its_agent(stand: Stand) -> None:
    over = WatchedScores(
        evaluator="agent_reliability",
        scope="session",
        progress=0.1,
        samples=90,
        trail=((int(make.START) - 60, 1000), (int(make.START) - 30, 100)),
    )
    ((key, planner),) = standings(0.9).items()
    stand.standings = {key: replace(planner, watched=(over,))}

    page = await stand.text(AGENT)

    assert f"since={make.START - 60:.0f}" in page
    assert "agent reliability had dropped</a>" in page
    assert page.count('class="mark past"') == 5, "on every chart"


def test_the_drop_detector_of_the_page_is_of_quality_and_not_of_work() -> None:
    work = WatchedScores(evaluator="work_baseline", scope="session", progress=0.9, samples=80)
    quality = WatchedScores(evaluator="confidence", scope="trace", progress=0.1, samples=80)

    assert nearest(Standing(service="a", agent="b", watched=(work, quality))) == quality
    assert nearest(Standing(service="a", agent="b", watched=(work,))) is None


def test_the_newest_release_is_offered_however_many_alarms_there_are() -> None:
    alarms = [Moment(float(at), "drop", f"evaluator {at}") for at in range(9)]
    releases = [Moment(8.0, "release", "1.5.0"), Moment(1.0, "release", "1.4.2")]

    assert offered([*alarms[:2], *releases]) == [*alarms[:2], *releases]
    assert offered([*alarms, *releases]) == [*alarms[: MOMENTS - 1], releases[0]]
    assert offered(alarms) == alarms[:MOMENTS]


# --- the badge of spans that lack what evaluators look at ---


def finding(lack: str, *stops: str, setting: str | None = None, says: str | None = None) -> Any:
    advice = () if setting is None else ({"setting": setting, "note": ""},)
    fields = {"lack": lack, "says": says, "traces": 1, "stops": stops, "example": "a"}
    return {**fields, "advice": advice}


def found(*findings: Any, service: str = "desk") -> Mapping[str, Any]:
    stacks = [{"service": service, "dialects": ("genai",), "findings": [each]} for each in findings]
    return {"stacks": stacks, "unscored": (), "judge": None}


@for_each(
    ("findings", "badge"),
    [
        (  # each evaluator counts once, and the first line of the first setting is named
            [
                finding("no_content", "coherence", "agentic", setting="A=1\nB=2"),
                finding("no_tool_results", "coherence", setting="C=3"),
            ],
            Badge(text="no content and 1 more: 2 evaluators blind", setting="A=1"),
        ),
        (
            [finding("no_session", "agent_reliability")],
            Badge(text="no session: 1 evaluator blind", setting=None),
        ),
        (
            [finding("not_read", "coherence", setting="(no setting)", says="spans are not read")],
            Badge(text="spans are not read: 1 evaluator blind", setting=None),
        ),
        ([finding("no_tokens", setting="A=1")], None),  # what stops no evaluator
    ],
)
def test_a_badge_says_what_is_lacking_and_what_sets_it(findings: list[Any], badge: Any) -> None:
    assert badges(found(*findings)).get("desk") == badge


async def test_the_overview_shows_the_badge_of_the_agents_service_alone(
    new_stand: NewStand,
) -> None:
    lacks = finding("no_content", "coherence", setting="CAPTURE=<all>")
    lacking = found(lacks, service="refunds")
    about = About(examine=lambda trace, spans: trace, diagnose=lambda notes, sessions: lacking)

    page = await filled(new_stand(about=about)).text("/")

    assert page.count('<tr class="blind">') == 1
    of_refunds = page[page.index(">clerk<") :]
    assert 'href="/health#doctor">no content: 1 evaluator blind</a>' in of_refunds
    assert "<code>CAPTURE=&lt;all&gt;</code>" in of_refunds


async def test_the_overview_is_there_without_findings_where_traces_cannot_be_read_now(
    new_stand: NewStand,
) -> None:
    def refuse(_notes: object, _sessions: object) -> Mapping[str, Any]:
        raise RequestRefused(503, "too many")

    answer = await filled(new_stand(about=About(diagnose=refuse))).get("/")

    assert answer.status_code == 200
    assert ">clerk<" in answer.text
