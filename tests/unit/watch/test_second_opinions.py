"""What the judge says of a drop, and from how many sessions."""

import pytest

from collector.records.windows import WindowEntry
from collector.watch.second_opinions import DAY
from collector.watch.windows.window import Window
from tests.support.opinions import AGENT, BAD, GOOD, SETTLE, Story, dropped


def test_a_loss_is_confirmed_at_the_first_look_that_shows_it_and_the_rest_is_not_asked() -> None:
    story = dropped()
    story.judged(BAD[:20])
    assert story.asked == [(None, 40)]
    assert story.words == "the judge is asked: 20 of 40 sessions judged, no verdict yet"

    story.look(after=SETTLE)

    assert story.words == "the judge agrees: task_completion 0.88 -> 0.59 over 20 sessions"
    assert story.asked == [(None, 40), (None, 0)]


def test_no_loss_is_said_once_one_of_a_tenth_is_ruled_out_and_asked_for_until_then() -> None:
    story = dropped(GOOD * 5)
    for _ in range(4):
        story.judged(GOOD)
        story.look(after=SETTLE)

    assert story.words == "the judge sees no loss over 80 sessions"
    assert story.asked == [(None, 40), (None, 40)]


def test_sessions_of_before_the_question_do_not_answer_it() -> None:
    """They may be those that raised the drop."""
    story = Story()
    story.judged(GOOD)
    began = story.now
    story.judged(BAD)
    story.drop()
    story.dropped = began
    story.look(after=SETTLE)

    assert story.words == "the judge is asked: 0 of 40 sessions judged, no verdict yet"


def test_it_is_asked_before_the_drop_stands_once_ten_scores_were_near() -> None:
    story = Story()
    story.judged(GOOD)
    story.progress = 0.6
    story.judged(GOOD[:10])
    assert story.asked == []
    story.judged(GOOD[:1])
    assert story.asked == [(None, 40)]

    story.progress = 0.4
    story.look()

    assert story.asked == [(None, 40), (None, 0)]
    assert story.opinions.shown() == {}


def test_no_loss_that_was_seen_before_the_drop_stood_does_not_hush_the_drop() -> None:
    story = Story()
    story.judged(GOOD * 5)
    story.progress = 0.6
    story.judged(GOOD[:11])
    for _ in range(2):
        story.judged(GOOD)
        story.look(after=SETTLE)
    assert story.words == "the judge sees no loss over 80 sessions"

    story.drop()

    assert story.words.startswith("the judge is asked: 0 of")


@pytest.mark.parametrize("asked_before", [True, False])
def test_a_judge_that_does_not_agree_with_itself_has_no_opinion_and_is_asked_no_more(
    asked_before: bool,
) -> None:
    """It passes every second session that it failed at first, and fails as many that it passed."""
    story = Story()
    story.judged(GOOD)
    if not asked_before:
        story.drop()
    for score in BAD[:20]:
        story.judged([score], again=1.4 - score if story.sessions % 2 else score)
    if asked_before:
        story.judged(GOOD)
        story.drop()
    story.look(after=SETTLE)

    assert story.words == "the judge has no opinion: it does not agree with itself"
    assert story.opinions.shown()[AGENT].verdict == "undecided"
    assert story.asked == ([] if asked_before else [(None, 40), (None, 0)])


def test_a_judge_that_agrees_with_itself_keeps_its_opinion() -> None:
    story = dropped()
    for score in BAD[:20]:
        story.judged([score], again=score)
    story.look(after=SETTLE)

    assert story.words.startswith("the judge agrees")


def test_without_judged_sessions_of_before_it_is_not_asked_and_says_so() -> None:
    story = Story()
    story.judged(GOOD[:7])
    story.now += 1.0
    story.drop()

    assert story.asked == []
    assert story.words == (
        "the judge has no opinion: it had judged 7 sessions before, 20 are needed"
    )


def test_a_mean_counts_sessions_of_sparse_times_as_often_as_they_stand_for() -> None:
    """A tenth is judged while all is well, everything while three of four fail."""
    window = Window(sessions=200, max_age=DAY)
    for at in range(100):
        weight, score = (10.0, 1.0) if at < 50 else (1.0, float(at % 4 == 0))
        window.offer(entry(at, score, weight))

    stats = window.stats(100.0)

    assert stats is not None
    assert stats.samples == 100
    assert stats.bounds.mean == pytest.approx((500 + 12) / 550, abs=0.01)
    assert window.mean(100.0) == stats.bounds.mean
    assert stats.bounds.lower < stats.bounds.mean < stats.bounds.upper


def entry(at: int, score: float, weight: float) -> WindowEntry:
    return WindowEntry(f"s{at}", float(at), 0, True, f"{at:032x}", score, weight=weight)
