"""The parameters of an address, as what they ask for."""

import pytest

from collector.api.session_filter import filter_of, sort_of
from collector.api.session_list import SessionFilter
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
