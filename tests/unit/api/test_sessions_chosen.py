"""Which sessions a list has, the file for a spreadsheet, and why one has no score."""

import csv
import io
from typing import Any

import pytest

from collector.api.session_filter import filter_of, sort_of
from collector.api.session_list import SessionFilter
from collector.api.session_news import LENGTH, why_unscored
from collector.records.signal import Coverage, Signal
from evaluators.model import Failure, ToolCall, Trace
from tests.support import api_records as make
from tests.support.api_stand import NewStand, Stand
from tests.support.standings import running_away, standings
from tests.support.table import for_each

NOW = 1_700_000_000.0
RUNAWAYS = frozenset({("shop", "s-2"), ("shop", "s-1")})


def asked(**given: str) -> tuple[SessionFilter, list[str]]:
    return filter_of(given, now=NOW, running_away=lambda: RUNAWAYS)


def test_every_parameter_is_understood() -> None:
    same = {
        "service": "shop",
        "agent": "clerk",
        "version": "2",
        "tool": "find_order",
        "model": "gpt-4o",
        "user": "acme",
        "status": "error",
        "failed": "tool_correctness",
    }
    limits = {"min_reliability": "0.25", "max_reliability": "1", "min_cost": "0.5"}

    found, wrong = asked(**same, **limits, q=" kettle ", attribute="plan=pro=x", min_seconds="90")

    assert wrong == []
    read: dict[str, Any] = {"text": "kettle", "attribute": ("plan", "pro=x"), **same}
    assert found == SessionFilter(**read, least=0.25, most=1.0, cost=0.5, seconds=90.0)


@for_each(
    ("text", "seconds"),
    [
        ("30m", NOW - 1_800),
        ("24h", NOW - 86_400),
        ("7d", NOW - 7 * 86_400),
        ("999999d", 0),
        ("1690000000.5", 1_690_000_000.5),
        *((f"2023-11-14T{time}", NOW) for time in ("22:13:20", "22:13:20Z", "23:13:20+01:00")),
        ("2023-11-14", 1_699_920_000),
    ],
)
def test_a_time_is_a_moment_or_a_length_back_from_now(text: str, seconds: float) -> None:
    assert asked(since=text) == (SessionFilter(since=round(seconds * 1e6)), [])


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
    chosen, (wrong,) = asked(**{name: text})

    assert chosen == SessionFilter()
    assert wrong.startswith(f"{name}: expected ")


def test_running_away_names_its_sessions_and_an_unknown_order_is_the_usual_one() -> None:
    sort, wrong = sort_of({"sort": "id; DROP TABLE sessions"}, "worst")

    assert asked(status="runaway")[0] == SessionFilter(names=[("shop", "s-1"), ("shop", "s-2")])
    assert sort_of({}, "worst") == ("worst", [])
    assert sort_of({"sort": "cost"}, "worst") == ("cost", [])
    assert sort == "worst"
    assert wrong[0].startswith("sort: expected one of worst, newest")


@pytest.fixture
def three(new_stand: NewStand) -> Stand:
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


async def test_sessions_are_chosen_by_cost_and_length(three: Stand) -> None:
    assert await chosen(three, "min_cost=0.02") == {"s-1", "s-2"}
    assert await chosen(three, "min_cost=1") == {"s-2"}
    assert await chosen(three, "min_seconds=15") == {"s-2", "s-3"}
    assert await chosen(three, "min_seconds=15&min_cost=1") == {"s-2"}
    page = await three.text("/sessions?min_cost=1")
    assert "s-2" in page
    assert "s-1" not in page
    assert "cost from (USD) <b>1</b>" in page


async def test_sessions_are_chosen_by_the_tool_the_model_and_the_user_of_any_of_their_traces(
    three: Stand,
) -> None:
    calls = (ToolCall(name="find_order"), ToolCall(name="find_order"))
    pro, free = {"plan": "pro", "region": "eu"}, {"plan": "free", "other": "pro"}
    first = {"tool_calls": calls, "models": ("gpt-4o-mini",), "user_id": "acme", "attributes": pro}
    other = {"tool_calls": (ToolCall(name="find"),), "models": ("gpt-4o",), "attributes": free}
    three.take_traces(
        make.trace(11, session_id="s-1", **first), make.trace(12, session_id="s-2", **other)
    )

    for asked, found in {
        "tool=find_order": {"s-1"},
        "tool=find": {"s-2"},
        "model=gpt-4o": {"s-2"},
        "user=acme&tool=find_order&model=gpt-4o-mini": {"s-1"},
        "user=acme&tool=find": set[str](),
        "attribute=plan%3Dpro": {"s-1"},
        "attribute=plan=free&tool=find": {"s-2"},
        "attribute=other=free": set[str](),
        **{f"q={word}": set[str]() for word in ("tool", "model", "user", "plan")},
        "tool=lookup&q=please": {"s-2", "s-3"},
    }.items():
        assert await chosen(three, asked) == found, asked
    assert "tool <b>find_order</b>" in await three.text("/sessions?tool=find_order")
    trace = await three.text(f"/trace?id={11:032x}")
    assert '<dt>plan</dt><dd><a href="/sessions?attribute=plan%3Dpro">pro</a></dd>' in trace
    assert '<a href="/sessions?user=acme">acme</a>' in trace

    changed = make.trace(11, session_id="s-1", tool_calls=(ToolCall(name="refund"),))
    three.take_traces(make.trace_value(changed, revision=1))
    assert await chosen(three, "tool=find_order") == set()
    assert await chosen(three, "tool=refund") == {"s-1"}


async def test_the_list_is_a_file_for_a_spreadsheet_to_which_the_page_leads(three: Stand) -> None:
    answer = await three.get("/api/v1/sessions?format=csv&sort=newest&min_cost=0.01")
    page = await three.text("/sessions?agent=planner&sort=newest")

    newer, older = csv.DictReader(io.StringIO(answer.text))
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["cache-control"] == "no-store"
    assert (newer["session_id"], newer["question"]) == ("s-2", 'say "hi", please')
    assert (newer["cost_usd"], newer["consistency"]) == ("1.5", "")
    assert (older["session_id"], older["question"]) == ("s-1", "'=HYPERLINK(1)"), "no formula"
    assert (await three.get("/api/v1/sessions?format=xml")).status_code == 422
    address = "/api/v1/sessions?agent=planner&amp;sort=newest&amp;format=csv&amp;limit=500"
    assert f'href="{address}"' in page


OF = make.trace(1)
FAILED = Failure(type="exception", message="a secret")
LOW = "only 1 of the 4 scores that it needs: the spans carry no content (3)"


def reliability(score: float | None, **changes: Any) -> Signal:
    return make.session_signal(OF, "agent_reliability", score, **changes)


RUNS_AWAY = "running away now"


def low(revision: int, explanation: str | None = LOW) -> Signal:
    why = {"outcome": "skipped", "reason": "low_coverage", "explanation": explanation}
    coverage = Coverage(expected=4, present=1)
    return reliability(None, revision=revision, coverage=coverage, **why)


@for_each(
    ("signal", "why"),
    [
        (low(1), LOW),
        (low(1, "x" * 999), "x" * LENGTH),
        (low(1, None), LOW.partition(":")[0]),
        (reliability(None, outcome="failed", error=FAILED), "failed with exception"),
        (reliability(None, explanation=None), None),
    ],
)
def test_the_explanation_is_the_reason_or_the_next_best(signal: Signal, why: str | None) -> None:
    assert why_unscored(make.value(signal)) == why


async def test_the_overview_says_why_until_there_is_a_score_and_again_when_it_goes(
    stand: Stand,
) -> None:
    stand.take_traces(OF)
    seen: list[str] = []
    for signal in (low(1), reliability(1.0, revision=2), low(3)):
        stand.take_signals(signal)
        stand.standings = {} if signal.score is None else standings(0.9)
        seen.append("".join([await stand.text(path) for path in ("/", "/sessions")]))
    (shown,) = await stand.items("sessions")
    page = await stand.text(f"/session?id={OF.session_id}")

    for each in (seen[0], seen[2]):
        assert each.count("not scored") == each.count(LOW) == 2, "the agent and its session"
    assert ("not scored" in seen[1], "1.00" in seen[1]) == (False, True)
    assert (shown["reliability"], shown["coverage"]) == (None, {"expected": 4, "present": 1})
    assert "Only 1 of the 4 scores" in page
    assert "1.00" not in page


async def test_a_trace_without_any_score_says_why_and_never_nothing_to_judge(stand: Stand) -> None:
    why = {"reason": "no_content", "explanation": "the spans carry no content"}
    unscored = {"outcome": "not_applicable", "score": None, "success": None, **why}
    stand.take_traces(OF)
    stand.take_signals(make.signal(OF, "confidence", **unscored))

    session = await stand.text(f"/session?id={OF.session_id}")
    trace = await stand.text(f"/trace?id={OF.trace_id}")

    assert "Not scored: the spans carry no content" in session
    assert "no content</span>" in trace
    assert "nothing to judge" not in trace


def running(of: Trace, **changes: Any) -> Signal:
    fields: dict[str, Any] = {"score": 0.0, "success": False, "final": False, "closed": None}
    return make.signal(of, "runaway", **{**fields, **changes})


async def test_an_open_trace_is_marked_wherever_it_stands(stand: Stand) -> None:
    of = make.trace(1)
    taken = stand.take_signals(running(of))
    stand.standings = running_away(of)

    pages = [
        await stand.text(path)
        for path in ("/", "/sessions", f"/session?id={of.session_id}", f"/trace?id={of.trace_id}")
    ]
    (agent,) = await stand.items("agents")

    assert len(taken.signals) == 1, "the live stream has it"
    assert [RUNS_AWAY in page for page in pages] == [True] * 4
    assert pages[0].count(RUNS_AWAY) == 2, "on top, and at the agent"
    assert [each["trace_id"] for each in agent["runaways"]] == [of.trace_id]


async def test_the_final_outcome_wins_at_its_revision_whichever_comes_last(
    stand: Stand,
) -> None:
    of = make.trace(1)
    final = running(of, final=True, closed="idle", id="f" * 32)
    stand.take_traces(of)

    taken = [
        len(stand.take_signals(each).signals)
        for each in (
            running(of),
            final,
            running(of, id="e" * 32),
            running(of, revision=1, id="d" * 32),
        )
    ]
    page = await stand.text(f"/trace?id={of.trace_id}")

    assert taken == [1, 1, 0, 1]
    assert RUNS_AWAY in page, "late spans opened it again"


async def test_a_trace_that_named_its_session_at_its_end_leaves_no_session_of_its_own(
    stand: Stand,
) -> None:
    of = make.trace(1)
    stand.take_signals(running(of, session_id=of.trace_id, session_source="trace"))
    before = await stand.items("sessions")

    stand.take_traces(of)
    after = await stand.items("sessions")
    (agent,) = await stand.items("agents")

    assert [each["session_id"] for each in before] == [of.trace_id]
    assert [each["session_id"] for each in after] == [of.session_id]
    assert agent["traces"] == 1
