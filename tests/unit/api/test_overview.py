"""What the overview puts first, how it says it, and what of it the page of an agent keeps."""

import re

import pytest
from msgspec.structs import replace

from collector.api.page.agent import MOMENTS, Moment, nearest, offered
from collector.records.standing import Standing, WatchedScores
from tests.support import api_records as make
from tests.support.api_stand import NewStand, Stand
from tests.support.standings import drop, running_away, standings

AGENT = "/agent?service=support-bot&agent=planner"


@pytest.fixture
def stand(new_stand: NewStand) -> Stand:
    """Three agents; planner was seen last, looper longest ago."""
    made = new_stand()
    for number, agent in enumerate(("looper", "writer", "planner"), 1):
        made.take_session(number, 0.8, agent=agent)
    return made


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

    page = await stand.text("/")

    top, _, table = page.partition('<table id="agents">')
    assert re.findall(r'class="name" href="/agent[^"]*">(\w+)</a>', top) == ["looper", "planner"]
    assert re.findall(r'class="name" href="/agent[^"]*">(\w+)</a>', table) == [
        *("looper", "planner", "writer")
    ]


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


async def test_one_session_is_one_session_on_a_telephone(stand: Stand) -> None:
    stand.standings = standings(0.14, sessions=1)
    one = await stand.text("/")
    stand.standings = standings(0.14, sessions=2)
    two = await stand.text("/")

    assert '>1<span class="narrow"> session</span>' in one
    assert '>2<span class="narrow"> sessions</span>' in two


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
