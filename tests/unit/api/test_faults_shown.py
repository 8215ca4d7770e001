"""What fails more often than before, and the page that puts two sides of an agent next to each other."""

import re
from typing import Any

import pytest
from msgspec.structs import replace

from collector.records.signal import rfc3339
from collector.records.standing import FailingTool, Fault
from evaluators.model import ToolCall
from tests.support import api_records as make
from tests.support.api_stand import NewStand, Stand
from tests.support.standings import drop, standings

AGENT = "/agent?service=support-bot&agent=planner"
KEY = ("support-bot", "planner")


@pytest.fixture
def stand(new_stand: NewStand) -> Stand:
    made = new_stand()
    made.take_session(1, 0.8)
    return made


def fault(**fields: Any) -> Fault:
    failing = Fault(
        fault="tool_failed",
        tool="find_order",
        since=make.START,
        uses=75,
        failures=38,
        uses_before=160,
        failures_before=1,
        error="TimeoutError",
        sessions=("s-1", "s-<2>"),
        worst=("s-<2>", "s-1"),
    )
    return replace(failing, **fields)


def failing(*faults: Fault, **fields: Any) -> dict[tuple[str, str], Any]:
    return {KEY: replace(standings(0.9)[KEY], faults=faults, **fields)}


async def test_the_overview_says_what_fails_in_how_many_sessions_and_before(stand: Stand) -> None:
    stand.standings = failing(fault())

    page = await stand.text("/")

    urgent = page[page.index('class="urgent"') : page.index('<table id="agents">')]
    assert 'tool=find_order&amp;status=error">find_order fails</a></b>' in urgent
    assert "38 of the last 75 sessions that used it since" in urgent
    assert "1 of 160 before (TimeoutError)" in urgent
    assert "What changed" in urgent


@pytest.mark.parametrize("length", ["15m", "12h", "30d"])
async def test_a_fault_lasts_from_its_beginning_to_now_whatever_time_the_charts_show(
    stand: Stand, length: str
) -> None:
    stand.time = make.START + 832
    stand.standings = failing(fault(), drops=(drop(since=make.START),))

    page = await stand.text(f"/?range={length}")

    assert page.count("13 min 52 s") == 2


async def test_the_agents_page_begins_with_it_links_to_its_sessions_and_compares_since_then(
    stand: Stand,
) -> None:
    stand.standings = failing(fault(), drops=(drop(cause=("tool_failed", "find_order")),))

    page = await stand.text(AGENT)

    assert page.index("find_order fails</a></b>") < page.index("<b>agent reliability</b>")
    assert "explained by this: find_order fails" in page
    assert "/session?service=support-bot&amp;id=s-1" in page
    assert "s-<2>" not in page
    assert f"since={make.START:.6f}" in page
    assert page.count('class="mark fault"') == 4, "one mark on every chart, though the drop is near"


async def test_a_drop_that_nothing_explains_says_so(moved: Stand) -> None:
    moved.standings = standings(0.14, drop())
    said = await moved.text(AGENT)
    moved.standings = standings(0.9)
    (agent,) = await moved.items("agents")

    assert "cause unknown: no tool, model call or loop fails more than before" in said
    assert agent["differs"] is None, "it did not get worse"
    assert 'id="differs"' not in await moved.text(AGENT)


async def test_the_api_has_it_and_a_tool_that_fails_as_long_as_it_is_known_apart(
    stand: Stand,
) -> None:
    always = FailingTool(tool="charge", uses=10, failures=9)
    stand.standings = failing(fault(), failing_always=(always,))

    (agent,) = await stand.items("agents")

    assert agent["failing_always"] == [{"tool": "charge", "uses": 10, "failures": 9}]
    assert "<b>charge</b> in 9 of 10 sessions that used it" in await stand.text(AGENT)
    assert agent["faults"] == [
        {
            "fault": "tool_failed",
            "tool": "find_order",
            "since": rfc3339(make.START),
            "uses": 75,
            "failures": 38,
            "uses_before": 160,
            "failures_before": 1,
            "error": "TimeoutError",
            "sessions": ["s-1", "s-<2>"],
            "worst": ["s-<2>", "s-1"],
            "tools": [],
        }
    ]


@pytest.fixture(params=[0, 40 * 365 * 86_400])
def moved(new_stand: NewStand, request: pytest.FixtureRequest) -> Stand:
    """Forty sessions: from the 31st on they are of another tenant, on another model, with a tool that fails.

    Their senders' clock is right, or far behind, as that of recordings which are sent again.
    """
    made = new_stand()
    made.time = make.START + 5000
    for number in range(1, 41):
        is_new = number > 30
        seen = make.START + 100 * number
        at = int((seen - request.param) * 1e9)
        of = make.trace(
            session_id=f"s-{number}",
            trace_id=f"{number:032x}",
            user_id="globex" if is_new else "acme",
            models=("large" if is_new else "small",),
            tool_calls=(ToolCall(name="find_order", error="no" if is_new else None),),
            start_time_unix_nano=at,
            end_time_unix_nano=at + 1_500_000_000,
        )
        made.take_traces(make.trace_value(of, seen=seen))
        made.take_signals(make.session_signal(of, "agent_reliability", 0.8, time=rfc3339(seen)))
    return made


async def test_what_differs_since_the_fault_is_listed_as_no_cause(moved: Stand) -> None:
    """The fault is the cause; a drop of another evaluator may have begun by chance before."""
    earlier = drop(since=make.START + 1500)
    moved.standings = failing(fault(since=make.START + 3050), drops=(earlier,))

    page = await moved.text(AGENT)
    (agent,) = await moved.items("agents")

    differs = page[page.index('id="differs"') :].split("</p>")[0]
    assert "10 sessions since, each score" in page
    assert "not necessarily a cause" in differs
    for shown in ("user <b>globex</b>", "model <b>large</b>"):
        assert f"{shown} in 100\u00a0% of sessions, 0\u00a0% before" in differs
    places = ("find_order fails", 'id="differs"', 'id="evaluators"')
    assert sorted(places, key=page.index) == [*places]
    assert {"kind": "user", "value": "globex", "before": 0.0, "since": 1.0} in agent["differs"]
    assert len(agent["differs"]) == 2


async def test_what_the_failing_sessions_have_is_said_beside_those_that_do_not_fail(
    stand: Stand,
) -> None:
    for number in range(1, 31):
        user, error = ("globex", None) if number % 2 else ("acme", "no")
        called = (ToolCall(name="find_order", error=error),)
        stand.take_session(100 * number, 0.8, user_id=user, tool_calls=called)
    stand.time = make.START + 5000
    stand.standings = failing(fault())

    page = await stand.text(AGENT)
    stand.standings = failing(fault(tool="charge"))
    other = await stand.text(AGENT)

    said = page[page.index("of-failing") :].split("</p>")[0]
    assert "Where <b>find_order</b> fails, not necessarily a cause" in said
    assert "user <b>acme</b> in 100\u00a0% of those sessions, 0\u00a0% of the others since" in said
    assert "of-failing" not in other


PAGE = "/compare?service=support-bot&agent=planner"
EACH = 10


@pytest.fixture
def releases(new_stand: NewStand) -> Stand:
    """Ten sessions of 1.4.2, then ten of 1.5.0, whose tool fails; each asks about its own order."""
    made = new_stand()
    for number in range(1, 2 * EACH + 1):
        is_new = number > EACH
        asked = ("Refund the broken lamp, please", "When will the parcel of my order arrive?")
        made.take_session(
            100 * number,
            0.2 if is_new else 0.9,
            agent_version="1.5.0" if is_new else "1.4.2",
            input=asked[number % 2],
            tool_calls=(ToolCall(name="find_order", error="no" if is_new else None),),
        )
    made.time = make.START + 5000
    return made


def table(page: str, name: str) -> list[list[str]]:
    """Its rows, without markup."""
    body = page[page.index(f'id="{name}"') :].split("</table>", maxsplit=1)[0]
    rows = re.findall(r"<tr.*?</tr>", body, re.DOTALL)
    return [
        [
            " ".join(re.sub(r"<[^>]*>", " ", cell).split())
            for cell in re.findall(r"<t[hd].*?</t[hd]>", row)
        ]
        for row in rows
    ]


async def test_the_newest_version_stands_beside_the_one_before(releases: Stand) -> None:
    page = await releases.text(PAGE)

    head, sessions, *rows = table(page, "scores")
    assert head[:3] == ["Evaluator", "1.4.2", "1.5.0"]
    assert sessions[:3] == ["Sessions", "10", "10"]
    reliability = next(row for row in rows if row[0] == "agent reliability")
    assert re.fullmatch(r"0.90 0.\d\d to 1.00", reliability[1])
    assert re.fullmatch(r"0.20 0.00 to \d.\d\d", reliability[2])
    assert reliability[3] == "0.00"
    assert table(page, "tools")[1:] == [["find_order", "0 of 10 sessions", "10 of 10 sessions"]]
    assert "version <b>1.5.0</b>" not in page  # that the sides differ in it is what was asked for


async def test_sessions_of_both_that_asked_alike_stand_side_by_side_each_kind_once(
    releases: Stand,
) -> None:
    page = await releases.text(PAGE)

    cards = page[page.index("The same kind of question") :].split("</article>")[:-1]
    asked = [re.findall(r'<p class="ask">(.*?)</p>', card)[0] for card in cards]
    scores = [re.findall(r"<b>(\d.\d\d)</b>", card)[0] for card in cards]
    assert len(cards) == 4
    assert asked[0] == asked[1] != asked[2] == asked[3]
    assert scores == ["0.90", "0.20"] * 2


async def test_two_times_of_every_version(releases: Stand) -> None:
    middle = rfc3339(make.START + 100 * EACH + 50)
    times = f"baseline=*&baseline_to={middle}&candidate=*&candidate_from={middle}"

    page = await releases.text(f"{PAGE}&{times}")

    head, sessions, *_ = table(page, "scores")
    assert sessions[:3] == ["Sessions", "10", "10"]
    assert head[1].startswith("every version until 2023-11-14")
    assert head[2].startswith("every version, from 2023-11-14")
    assert 'id="verdict"' not in page


@pytest.mark.parametrize("wrong", ["0001-01-01T00:00%2B23:00", "9999999999999", "nan", "yes<b>"])
async def test_a_time_that_is_none_is_said_and_the_rest_is_shown(
    releases: Stand, wrong: str
) -> None:
    answer = await releases.get(f"{PAGE}&candidate_from={wrong}&baseline_from=30d")

    assert answer.status_code == 200
    assert answer.text.count("is neither a time such as") == 1
    assert "yes<b>" not in answer.text
    assert table(answer.text, "scores")[1][0] == "Sessions"


async def test_a_version_that_never_reported_is_empty_and_one_beside_itself_is_no_comparison(
    releases: Stand,
) -> None:
    empty = await releases.text(f"{PAGE}&candidate=9.9")
    same = await releases.text(f"{PAGE}&baseline=1.5.0&candidate=1.5.0")
    paths = ("/compare?service=support-bot&agent=unknown", "/compare")

    assert table(empty, "scores")[1][:3] == ["Sessions", "10", "0"]
    assert "No question of one side was asked in like words on the other." in empty
    assert "Both sides are the same" in same
    assert 'id="verdict"' not in same
    assert [(await releases.get(each)).status_code for each in paths] == [404, 400]
