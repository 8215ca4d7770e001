"""How many sessions the judge is asked about for a second opinion, by whom, and where it cannot answer."""

import pytest

from collector.config.tree import JudgeMore
from collector.watch.second_opinions import AGAIN, MOST, SecondOpinions
from tests.support.opinions import AGENT, BAD, GOOD, SETTLE, Story, dropped, made
from tests.support.state_tables import give_back


def test_a_day_asks_no_more_than_one_drop_may_cost() -> None:
    story = Story()
    story.judged(GOOD)
    for _ in range(12):
        story.drop()
        story.judged([0.7] * 20, failed=True)
        story.dropped, story.progress = None, 0.0
        story.look()

    asked = [sessions for _, sessions in story.asked if sessions]
    assert sum(asked) - 20 * story.asked.count((None, 0)) <= MOST


def test_a_judge_that_is_away_is_said_and_asked_no_more_than_once_for_each_session() -> None:
    story = dropped()
    story.judged([0.0] * 12, failed=True)
    story.look(after=AGAIN)

    assert story.words == (
        "the judge is asked: 0 of 40 sessions judged, no verdict yet; 12 have no answer"
    )
    assert story.asked == [(None, 40), (None, 28)]


@pytest.mark.parametrize(("answered", "words"), [(0, "0 of 80"), (10, "10 of 80")])
def test_a_budget_of_nothing_or_one_that_runs_out_half_way_is_said(
    answered: int, words: str
) -> None:
    story = dropped()
    story.judged(BAD[:answered])
    story.judged([0.0] * (40 - answered), failed=True, reason="budget")
    story.look(after=SETTLE)

    left = 40 - answered
    assert story.words == (
        f"the judge is asked: {words} sessions judged, no verdict yet;"
        f" {left} have no answer, {left} for want of judge.budget"
    )
    assert story.asked == [(None, 40), (None, 40)]


def test_two_agents_that_drop_at_once_have_an_opinion_each() -> None:
    opinions = made()
    one, other = Story(opinions), Story(opinions, ("bot", "writer"))
    for each in (one, other):
        each.judged(GOOD)
        each.drop()
    one.judged(BAD)
    other.judged([0.0] * 12, failed=True)
    one.look(after=SETTLE)

    assert one.words.startswith("the judge agrees")
    assert other.words.startswith("the judge is asked: 0 of 40")


def test_a_version_that_is_rolled_back_while_it_is_asked_about_asks_for_nothing_more() -> None:
    story = Story(made(JudgeMore(new_version=40, drop=40)))
    story.judged(GOOD)
    story.version = "2"
    story.judged(BAD[:10])
    story.drop()
    asked = len(story.asked)

    story.version, story.dropped, story.progress = "1", None, 0.0
    story.judged(GOOD)

    assert story.asked[asked:] == [(None, 0)]
    assert story.opinions.shown() == {}


def test_a_judge_that_is_set_up_while_a_drop_stands_has_its_say_on_the_next_one() -> None:
    story = Story()
    story.drop()
    story.judged(BAD)
    assert story.words.startswith("the judge has no opinion: it had judged 0 sessions before")
    assert story.asked == []

    story.dropped, story.progress = None, 0.0
    story.judged(GOOD)
    story.drop()

    assert story.asked == [(None, 40)]


def test_the_first_sessions_of_a_version_are_asked_about_and_what_the_one_before_lacks() -> None:
    story = Story(made(JudgeMore(new_version=40, drop=None)))
    story.look()
    story.judged(GOOD[:30])
    assert story.asked == [("1", 40)]

    story.version = "2"
    story.opinions.look(AGENT, {"1", "2"}, [], story.now)

    wanted = {each.version: each.sessions for each in story.opinions.requests}
    assert wanted == {"1": 10, "2": 40}


def test_a_request_is_spread_over_partitions() -> None:
    story = Story(made(partitions=12))
    story.judged(GOOD)
    story.drop()

    assert story.asked == [(None, 4)]


def test_a_restart_goes_on_where_it_was() -> None:
    story = dropped()
    story.judged(BAD[:20])
    again = made()
    assert give_back(again.table, story.opinions.table.pending()) == []
    story.opinions = again

    story.look(after=SETTLE)

    assert story.words == "the judge agrees: task_completion 0.88 -> 0.59 over 20 sessions"
    assert story.asked == [(None, 40), (None, 0)]


@pytest.mark.parametrize(
    ("evaluator", "model", "kept"),
    [("task_completion", "a", 39), ("task_completion", "b", 0), ("helpfulness", "a", 0)],
)
def test_another_judge_does_not_answer_for_the_one_before(
    evaluator: str, model: str, kept: int
) -> None:
    settings = JudgeMore(new_version=None, drop=40)
    story = Story(SecondOpinions(settings, "task_completion", model="a", settle=SETTLE))
    story.judged(GOOD)
    story.drop()
    again = SecondOpinions(settings, evaluator, model=model, settle=SETTLE)
    assert give_back(again.table, story.opinions.table.pending()) == []
    story.opinions = again

    story.look()

    assert again.shown()[AGENT].samples_before == kept
    assert story.asked == [(None, 40)]
    assert story.words.startswith("the judge is asked" if kept else "the judge has no opinion")


def test_a_judge_that_is_removed_says_nothing_and_asks_nothing() -> None:
    story = dropped()
    removed = SecondOpinions(None, None, settle=SETTLE)
    assert give_back(removed.table, story.opinions.table.pending()) == []

    removed.look_at(dict, lambda: {AGENT: frozenset({"1"})}, story.now + 1)

    assert removed.shown() == {}
    assert removed.requests == []
