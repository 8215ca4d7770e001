"""Scores are compared with their own past as the definition says, and a restart changes nothing, whatever was lost."""

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.formulas.own_history import HistoryState, OwnHistory
from evaluators.formulas.own_past import OwnPast, PastState, tie_break
from evaluators.formulas.past_limits import DAY, PastLimits
from tests.support.examples import examples

SMALL = PastLimits(
    newest=12,
    hour_newest=9,
    week_newest=7,
    least=3,
    own=1,
    age=20 * DAY,
    hour_age=5 * DAY,
    week_age=9 * DAY,
    weekly_after=4 * DAY,
    slacks=(0.02, 0.16),
    limits=(3.0, 1.2),
    clears_after=8,
    version_clears_after=3,
    new_normal=3 * DAY,
    versions=3,
    journal=5,
)
scores = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
gaps = st.one_of(st.floats(0, 3600), st.floats(0, DAY / 4), st.floats(DAY, 5 * DAY))
feeds = st.lists(st.tuples(scores, gaps, st.sampled_from("abc")), max_size=60)


@settings(max_examples=examples(60))
@given(
    st.lists(st.tuples(scores, gaps), max_size=20), st.integers(1, 14), scores, st.floats(0, 0.999)
)
def test_a_rank_is_the_definition_s(
    some: list[tuple[float, float]], times: int, score: float, tie: float
) -> None:
    history, time, earlier = OwnHistory(SMALL), DAY, some * times
    ages = (SMALL.age, SMALL.hour_age, SMALL.week_age)
    newest = (SMALL.newest, SMALL.hour_newest, SMALL.week_newest)
    levels: list[dict[object, list[tuple[float, int]]]] = [{}, {}, {}]

    def strata(minute: int) -> list[list[tuple[float, int]]]:
        """Those of the minute, by level, without what is too old."""
        at = datetime.fromtimestamp(minute * 60, UTC)
        cells = (0, (at.hour, at.isoweekday() > 5), (at.isoweekday(), at.hour))
        for level, cell, age in zip(levels, cells, ages, strict=True):
            held = level.setdefault(cell, [])
            held[:] = [each for each in held if each[1] >= minute - age // 60]
        return [level[cell] for level, cell in zip(levels, cells, strict=True)]

    for each, gap in earlier:
        time += gap
        history.insert(each, time)
        for stratum, most in zip(strata(int(time) // 60), newest, strict=True):
            stratum.append((each, int(time) // 60))
            del stratum[:-most]

    rank = history.rank(score, tie, time)

    every, hour, of_week = strata(int(time) // 60)
    hours, week = (sum(map(len, level.values())) for level in levels[1:])
    is_week_old = bool(earlier) and time - (DAY + earlier[0][1]) >= SMALL.weekly_after
    among = hour if hours >= 24 * SMALL.own else every
    if is_week_old and week >= 168 * SMALL.own:
        among = of_week
    assert history.samples == max(len(every), hours, week)
    if len(among) < SMALL.least:
        assert rank is None
        return
    values = [each for each, _ in among]
    less, same = sum(each < score for each in values), values.count(score)
    assert rank == pytest.approx((less + tie * (same + 1)) / (len(values) + 1))


@settings(max_examples=examples(60))
@given(feeds, st.data())
def test_a_restart_changes_nothing(
    fed: list[tuple[float, float, str]], data: st.DataObject
) -> None:
    """A crash loses what was not written: of one batch the state alone, or the state and some of its strata."""
    whole, crashing = OwnPast(SMALL), OwnPast(SMALL)
    stored, strata = msgspec.msgpack.encode(PastState()), dict[int, bytes]()
    time, unwritten = DAY, list[tuple[str, float, float, str]]()
    for number, (score, gap, version) in enumerate(fed):
        time += gap
        each = (str(number), score, time, version)
        whole.feed(*each)
        crashing.feed(*each)
        unwritten.append(each)
        what = data.draw(st.sampled_from(["go on", "write", "crash", "crash in the write"]))
        if what in {"write", "crash in the write"}:
            due = crashing.due()
            stored, unwritten = msgspec.msgpack.encode(crashing.state()), []
            kept = len(due) if what == "write" else data.draw(st.integers(0, len(due)))
            strata |= dict([*due.items()][:kept])
            if what == "write":
                crashing.written(due)
        if what.startswith("crash"):
            state = msgspec.msgpack.decode(stored, type=PastState)
            crashing = OwnPast(SMALL, state, strata)
            for again in unwritten:
                crashing.feed(*again)

        assert shown(crashing) == shown(whole)

    state = msgspec.msgpack.encode(crashing.state().worse)
    assert state == msgspec.msgpack.encode(whole.state().worse)


def shown(past: OwnPast) -> tuple[object, ...]:
    return (past.worse, past.better, past.progress, past.better_progress, past.history_samples)


def test_a_tie_is_broken_by_the_session() -> None:
    assert tie_break("a") == int("ca978112ca1bbdca", 16) / 2**64


@pytest.mark.parametrize(
    "broken", [HistoryState(journal=b"123"), HistoryState(number=1, journal=bytes(16))]
)
def test_what_was_not_stored_is_refused(broken: HistoryState) -> None:
    with pytest.raises(ValueError, match="journal"):
        OwnHistory(SMALL, broken)


@settings(max_examples=examples(30))
@given(feeds)
def test_the_journal_is_cut_and_so_is_what_a_stratum_takes(
    fed: list[tuple[float, float, str]],
) -> None:
    past, time = OwnPast(SMALL), DAY
    for number, (score, gap, version) in enumerate(fed):
        time += gap
        past.feed(str(number), score, time, version)
        due = past.due()
        past.written(due)

        assert len(past.state().history.journal) <= 8 * SMALL.journal
        assert all(len(each) <= 16 + 8 * SMALL.newest for each in due.values())
