"""Charts, and what changed: where values are, what a time axis names, which evaluators moved farthest."""

import math
import random
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from collector.api.charts import Point
from collector.api.outcomes import StoredOutcome
from collector.api.page import chart, series
from collector.api.page.timespan import LENGTHS, Timespan, timespan
from collector.api.what_changed import scores_of
from collector.records.moved import LEAST, EvaluatorScores, mean_rank, moved
from collector.records.standing import WindowMean
from tests.support.table import for_each

NOW = 1_700_000_000.0
HOUR = 3_600.0


def point(**numbers: float | int | None) -> Point:
    given = {"row": 1, "last": 0, "errors": 0, "traces": 1} | numbers
    return Point(**{name: given.get(name) for name in Point._fields})  # pyright: ignore[reportArgumentType]


@for_each(
    ("values", "path"),
    [
        ([0.0, None, 1.0, 0.5], "M125 100L625 0L875 50"),
        ([None, 0.5], "M500 50L1000 50"),  # one known part is a dash
        ([None, None], ""),
        ([], ""),
        ([-1.0, 99.0], "M250 100L750 0"),  # what is beyond an edge is at it
    ],
)
def test_a_line_goes_through_the_middle_of_the_parts_that_are_known(
    values: list[float | None], path: str
) -> None:
    assert chart.line(values, 1.0) == path


def test_bounds_are_an_area_through_the_parts_that_have_both() -> None:
    one = chart.band([0.25, None], [0.75, 1.0], 1.0)
    two = chart.band([0.25, 0.5], [0.75, 1.0], 1.0)

    assert one == "M0.0 25L250.0 25L500.0 25L500.0 75L250.0 75L0.0 75Z"
    assert two == "M0.0 25L250.0 25L750.0 0L1000.0 0L1000.0 50L750.0 50L250.0 75L0.0 75Z"
    assert chart.band([0.1, None, 0.1], [0.2, None, 0.2], 1.0).count("Z") == 2
    assert chart.band([], [], 1.0) == ""


def test_the_upper_edge_is_a_round_number() -> None:
    values: list[list[float | None]] = [[None], [0.0], [0.7], [1.2], [2.2], [3, 40], [0.0031]]
    tops = [chart.round_top(each) for each in [*values, [math.inf, 6.0]]]

    assert tops == pytest.approx([1, 1, 1, 2, 2.5, 50, 0.005, 10])


def test_what_is_shown_fits_what_there_is_and_what_matters() -> None:
    def name(*ages: float, asked: str | None = None, since: float | None = None) -> str:
        seen = [NOW - age for age in ages]
        began = None if since is None else NOW - since
        return timespan(asked, now=NOW, seen=seen, since=began, parts=48).name

    assert name(400, 10) == "15m"
    assert name(2 * HOUR, 60) == "3h"
    assert name(40 * 24 * HOUR, 60) == "24h", "of a long past the last day"
    assert name(40 * 24 * HOUR, 30 * HOUR) == "7d", "the newest is a day old"
    assert name(40 * 24 * HOUR, 60, since=3 * 24 * HOUR) == "7d", "a drop that began before"
    assert name(400, asked="30d") == "30d"
    assert name(400, asked="a year") == "15m"
    assert name() == "1h"
    assert name(90 * 24 * HOUR, 80 * 24 * HOUR) == "30d"


def of_length(name: str, parts: int = 48, now: float = NOW) -> Timespan:
    return timespan(name, now=now, seen=(), since=None, parts=parts)


def test_parts_begin_at_round_moments_so_that_points_stay_as_they_are() -> None:
    spans = [of_length("1h", now=NOW + at) for at in (0, 10, 74)]
    day = of_length("24h")

    assert len({*spans[0].edges} & {*spans[2].edges}) >= 47
    assert all(each.first <= NOW < each.last + 75 for each in spans)
    assert all(each.last - each.first == HOUR for each in spans)
    assert len(list(pairwise(day.edges))) == 48
    assert (day.place(day.first - 1), day.place(day.last)) == (None, 1)


def test_the_axis_names_a_few_round_moments_within() -> None:
    for name in LENGTHS:
        span = of_length(name)
        assert 1 <= len(span.ticks) <= 7, name
        assert all(0 <= tick.at <= 1 for tick in span.ticks)
    assert [tick.label for tick in of_length("1h").ticks[:2]] == ["21:15", "21:30"]


def test_progress_goes_on_as_it_was_until_the_next_score() -> None:
    edges = [100.0, 200.0, 300.0, 400.0]

    assert series.progress([(50, 400)], edges) == [0.4, 0.4, 0.4]
    assert series.progress([(120, 100), (150, 900), (310, 200)], edges) == [0.9, 0.9, 0.2]
    assert series.progress([(210, 500)], edges) == [None, 0.5, 0.5]
    assert series.progress([], edges) == [None, None, None]


def test_bounds_are_of_as_many_parts_as_they_need_and_the_mean_of_each() -> None:
    span = of_length("1h", parts=12)
    few = series.reliability([[point(reliability=0.8)] * 20] * 12, span)
    many = series.reliability([[point(reliability=0.8)] * 100] * 12, span)

    assert few.band.count("M") == many.band.count("M") == 1
    bounds = {float(y) for y in re.findall(r" ([\d.]+)", few.band)}
    assert len(bounds) == 2, "those of 60 sessions, three parts, are the same four times"
    assert few.lines[0].path.count("L") == many.lines[0].path.count("L") == 11
    assert "0.80, bounds 0." in few.hovers[0].text
    assert few.hovers[0].text.endswith("(20 sessions)")


def test_nothing_known_is_a_chart_that_says_so() -> None:
    span = of_length("1h", parts=4)
    empty = series.reliability([[], [point()], [], []], span)

    assert (empty.lines[0].path, empty.band, empty.hovers) == ("", "", ())
    assert empty.summary == "Reliability: nothing is known in this time"


def test_amounts_of_traces_are_percentiles_over_sessions() -> None:
    parts = [[point(seconds=float(each), traces=2) for each in range(2, 22, 2)], []]

    assert series.at_percentile(parts, series.seconds_per_trace, 0.5) == [5.5, None]
    assert series.per_session(parts, lambda each: each.cost) == [None, None]


def test_an_evaluator_with_signals_of_several_traces_is_listed_once() -> None:
    said = [
        StoredOutcome(1, 0.5, True),
        StoredOutcome(1, 1.0, False),
        StoredOutcome(2, None, None),
        StoredOutcome(9, 0, None),
    ]

    found = scores_of(said, {1: "coherence", 2: "cost"})

    assert found["coherence"] == EvaluatorScores(1.5, 2, 2, 1)
    assert found["coherence"].score == 0.75
    assert found[""] == EvaluatorScores(0, 1, 0, 0)
    assert "cost" not in found


def test_labels_that_would_overlap_are_below_each_other_and_left_out_where_it_is_narrow() -> None:
    kinds: dict[float, chart.Kind] = {0.1: "drop", 0.14: "fault", 0.4: "drop", 0.12: "release"}
    marks = [chart.mark(at, kind, ["tool correctness"]) for at, kind in kinds.items()]

    places = [(each.row, each.is_close) for each in chart.apart(marks)]

    assert places == [(0, False), (1, True), (0, True), (0, False)]


def test_a_mark_of_several_changes_is_labelled_with_the_first_and_names_all() -> None:
    names = ["agent reliability", "confidence", "step efficiency"]
    one, many = chart.mark(0.25, "drop", names[:1]), chart.mark(0.9, "release", names)

    assert one[:5] == ("25.00%", "drop", "agent reliability", "agent reliability", "start")
    assert many[:5] == ("90.00%", "release", ", ".join(names), "agent reliability +2", "end")


def test_a_past_alarm_is_one_that_the_trail_has_left_behind() -> None:
    over = [(10, 400), (20, 1000), (30, 1000), (40, 990), (50, 1000), (60, 0)]

    assert series.past_alarms(over) == [50.0, 20.0]
    assert series.past_alarms(over[:-1]) == [20.0], "the last one stands"
    assert series.past_alarms([(1, 1000), (2, 1000)]) == []
    assert series.past_alarms([(1, 999)]) == []


def test_the_headline_since_a_change_is_a_line_of_its_own_from_the_change_on() -> None:
    """Beside it the mean of each part jumps with every few sessions."""
    span = of_length("1h", parts=4)
    parts = [[point(reliability=0.8)] * 20] * 4
    whole = WindowMean(mean=0.8, lower=0.7, upper=0.9, samples=80)

    without = series.reliability(parts, span, whole)
    half = series.reliability(
        parts, span, replace(whole, mean=0.25, since=(span.first + span.last) / 2)
    )
    long_ago = series.reliability(parts, span, replace(whole, since=span.first - HOUR))

    assert len(without.lines) == 1
    assert half.lines[1] == ("since the change: 0.25", "since", "M500 75H1000")
    assert half.summary.endswith("; since the change: 0.25")
    assert long_ago.lines[1].path == "M0 20H1000"


def sessions(**scores: list[float]) -> list[dict[str, EvaluatorScores]]:
    """The n-th session has the n-th score of each evaluator; below .5 it fails."""
    count = max(len(each) for each in scores.values())
    return [
        {
            name: EvaluatorScores(own[at], 1, 1, own[at] < 0.5)
            for name, own in scores.items()
            if at < len(own)
        }
        for at in range(count)
    ]


def test_the_farthest_move_comes_first_and_what_chance_explains_last() -> None:
    draw = random.Random(7)
    before = sessions(
        coherence=[draw.uniform(0.6, 0.9) for _ in range(80)],
        tools=[draw.uniform(0.8, 1.0) for _ in range(80)],
        steps=[draw.uniform(0.6, 0.9) for _ in range(80)],
    )
    since = sessions(
        coherence=[draw.uniform(0.6, 0.9) for _ in range(40)],
        tools=[draw.uniform(0.0, 0.3) for _ in range(40)],
        steps=[draw.uniform(0.7, 1.0) for _ in range(40)],
    )

    first, second, third = moved(before, since)

    assert (first.evaluator, first.rank, first.is_clear) == ("tools", 0.0, True)
    assert (second.evaluator, second.is_clear) == ("steps", True)
    assert second.shift > 0
    assert (third.evaluator, third.is_clear) == ("coherence", False)
    assert first.before is not None
    assert first.since is not None
    assert (first.before.failing, first.since.failing) == (0.0, 1.0)


def test_too_few_or_one_side_alone_is_not_compared_and_what_never_differs_ranks_in_the_middle() -> (
    None
):
    (few,) = moved(sessions(tools=[0.9] * 50), sessions(tools=[0.1] * (LEAST - 1)))
    (same,) = moved(sessions(loops=[1.0] * 30), sessions(loops=[1.0] * 30))
    alone = moved(sessions(old=[1.0] * 9), sessions(new=[1.0] * 9))

    assert (few.rank, few.is_clear, few.shift) == (None, False, 0.0)
    assert (same.rank, same.is_clear) == (0.5, False)
    sides = {each.evaluator: (each.before is None, each.since is None) for each in alone}
    assert sides == {"old": (False, True), "new": (True, False)}
    assert {each.rank for each in alone} == {None}


def test_chance_alone_rarely_looks_like_a_change() -> None:
    draw = random.Random(3)
    clear = 0
    for _ in range(400):
        before, since = ([draw.random() for _ in range(40)] for _ in range(2))
        (found,) = moved(sessions(any=before), sessions(any=since))
        clear += found.is_clear

    assert clear <= 5


@given(
    before=st.lists(st.floats(0, 1), min_size=1, max_size=30),
    since=st.lists(st.floats(0, 1), min_size=1, max_size=30),
)
def test_the_mean_rank_is_the_share_of_pairs_that_went_up(
    before: list[float], since: list[float]
) -> None:
    pairs = [(new > old) + (new == old) / 2 for new in since for old in before]

    assert abs(mean_rank(before, since) - sum(pairs) / len(pairs)) < 1e-9
