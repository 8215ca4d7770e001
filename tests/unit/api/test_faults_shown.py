"""What fails more often than before: on the overview, on the agent's page and in the API."""

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


async def test_a_drop_that_nothing_explains_says_so(stand: Stand) -> None:
    stand.standings = standings(0.14, drop())

    page = await stand.text(AGENT)

    assert "cause unknown: no tool, model call or loop fails more than before" in page


async def test_the_api_has_it(stand: Stand) -> None:
    stand.standings = failing(fault())

    (agent,) = await stand.items("agents")

    assert agent["faults"] == [
        {
            "fault": "tool_failed",
            "tool": "find_order",
            "since": agent["faults"][0]["since"],
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
    assert agent["faults"][0]["since"].endswith("Z")


async def test_a_hostile_tool_name_is_no_markup(stand: Stand) -> None:
    stand.standings = failing(fault(tool="<script>alert(1)</script>"))

    for path in ("/", AGENT):
        assert "<script>alert(1)" not in await stand.text(path)


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


async def test_what_differs_since_then_is_listed_as_no_cause(moved: Stand) -> None:
    moved.standings = failing(fault(since=make.START + 3050))

    page = await moved.text(AGENT)
    (agent,) = await moved.items("agents")

    differs = page[page.index('id="differs"') :].split("</p>")[0]
    assert "not necessarily a cause" in differs
    assert "user <b>globex</b> in 100\u00a0% of sessions, 0\u00a0% before" in differs
    assert "model <b>large</b> in 100\u00a0% of sessions, 0\u00a0% before" in differs
    assert (
        page.index("find_order fails") < page.index('id="differs"') < page.index('id="evaluators"')
    )
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


async def test_since_is_when_the_fault_began_though_a_drop_began_before(moved: Stand) -> None:
    """The fault is the cause; a drop of another evaluator may have begun by chance."""
    began = fault(since=make.START + 3050)
    moved.standings = failing(began, drops=(drop(since=make.START + 1500),))

    page = await moved.text(AGENT)
    (agent,) = await moved.items("agents")

    assert "10 sessions since, each score" in page
    assert {"kind": "user", "value": "globex", "before": 0.0, "since": 1.0} in agent["differs"]


async def test_an_agent_that_did_not_get_worse_is_not_looked_at(moved: Stand) -> None:
    moved.standings = standings(0.9)

    (agent,) = await moved.items("agents")

    assert agent["differs"] is None
    assert 'id="differs"' not in await moved.text(AGENT)


async def test_a_tool_that_fails_as_long_as_it_is_known_is_listed_apart(stand: Stand) -> None:
    tool = FailingTool(tool="charge", uses=10, failures=9)
    stand.standings = {KEY: replace(standings(0.9)[KEY], failing_always=(tool,))}

    page = await stand.text(AGENT)
    (agent,) = await stand.items("agents")

    assert "<b>charge</b> in 9 of 10 sessions that used it" in page
    assert agent["failing_always"] == [{"tool": "charge", "uses": 10, "failures": 9}]
    assert agent["faults"] == []
