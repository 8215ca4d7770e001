"""When the judge is asked beyond its sample, and what it says of a drop."""

from collections.abc import Iterable

import pytest

from collector.config.tree import JudgeMore
from collector.records.signal import rfc3339
from collector.records.signal_batch import SignalHeader, SubjectHeader
from collector.records.windows import WindowEntry
from collector.watch.second_opinions import AGAIN, DAY, MOST, NearAlarm, SecondOpinions
from collector.watch.windows.seen import Seen
from collector.watch.windows.window import Window
from tests.support.state_tables import give_back

AGENT = ("bot", "planner")
SETTLE = 300.0
START = 10 * DAY + 3600.0  # early in a day


def made(more: JudgeMore | None = None, *, partitions: int = 1) -> SecondOpinions:
    settings = more or JudgeMore(new_version=None, drop=40)
    return SecondOpinions(settings, "task_completion", settle=SETTLE, partitions=partitions)


class Story:
    """One agent, whose sessions come every ten seconds and are judged at once."""

    def __init__(
        self, opinions: SecondOpinions | None = None, agent: tuple[str, str] = AGENT
    ) -> None:
        self.opinions = opinions or made()
        self.agent = agent
        self.now = START
        self.sessions = 0
        self.dropped: float | None = None
        self.progress = 0.0
        self.fall = 0.25  # of the mean rank, while it stands
        self.version = "1"
        self.asked: list[tuple[str | None, int]] = []

    def judged(
        self,
        scores: Iterable[float],
        *,
        sample: str = "more",
        failed: bool = False,
        reason: str | None = None,
        again: float | None = None,
    ) -> None:
        for score in scores:
            self.now += 10.0
            self.sessions += 1
            subject = SubjectHeader(
                "trace",
                "bot",
                "planner",
                f"s{self.sessions}",
                "session.id",
                rfc3339(self.now),
                agent_version=self.version,
            )
            header = SignalHeader(
                f"{self.sessions:032x}",
                "task_completion",
                "llm_judge",
                "failed" if failed else "scored",
                final=True,
                score=None if failed else score,
                first=True,
                sample=sample,
                again=again,
                reason=reason,
            )
            self.opinions.take(self.agent, Seen(subject, self.now), header, is_new=True)
            self.look()

    def look(self, after: float = 0.0) -> None:
        self.now += after
        alarm = NearAlarm(
            "work_baseline/session", self.progress, self.sessions, self.dropped, self.fall
        )
        self.opinions.look(self.agent, {self.version}, [alarm], self.now)
        self.asked += [(each.version, each.sessions) for each in self.opinions.requests]
        self.opinions.pending()
        self.opinions.written()

    def drop(self) -> None:
        self.dropped, self.progress = self.now, 1.0
        self.look()

    @property
    def words(self) -> str:
        return self.opinions.shown()[self.agent].words


GOOD, BAD = [0.9, 0.8, 0.95, 0.85] * 10, [0.5, 0.4, 0.9, 0.55] * 10


def test_a_loss_is_confirmed_at_the_first_look_that_shows_it_and_the_rest_is_not_asked() -> None:
    story = Story()
    story.judged(GOOD)
    story.drop()
    story.judged(BAD[:20])
    assert story.asked == [(None, 40)]
    assert story.words == "the judge is asked: 20 of 40 sessions judged, no verdict yet"

    story.look(after=SETTLE)

    assert story.words == "the judge agrees: task_completion 0.88 -> 0.59 over 20 sessions"
    assert story.asked == [(None, 40), (None, 0)]


def test_no_loss_is_said_and_what_is_undecided_is_asked_further() -> None:
    story = Story()
    story.judged(GOOD * 5)
    story.drop()
    for _ in range(4):
        story.judged(GOOD)
        story.look(after=SETTLE)

    assert story.words == "the judge sees no loss over 80 sessions"
    assert story.asked == [(None, 40), (None, 40)]


def test_no_loss_is_not_said_where_one_as_the_scores_show_is_not_ruled_out() -> None:
    """A judge that sorts badly shows little of a small loss: that must not hush it."""
    story = Story()
    story.judged(GOOD * 5)
    story.fall = 0.1
    story.drop()
    for _ in range(4):
        story.judged(GOOD)
        story.look(after=SETTLE)

    assert story.words == (
        "the judge cannot tell: undecided after 160 sessions, more would hardly decide"
    )


def test_no_more_are_asked_about_where_the_last_look_would_hardly_decide() -> None:
    """As good as before, and a fall too small to be ruled out."""
    story = Story()
    story.judged(GOOD * 5)
    story.fall = 0.05
    story.drop()
    story.judged(GOOD)
    story.look(after=SETTLE)

    assert story.words == (
        "the judge cannot tell: undecided after 40 sessions, more would hardly decide"
    )
    assert story.asked == [(None, 40)]

    story.judged(BAD * 3, sample="base")  # what the sample brings is looked at all the same
    story.look(after=SETTLE)

    assert story.words.startswith("the judge agrees")


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


@pytest.mark.parametrize("fall", [0.25, 0.05], ids=["no loss", "cannot tell"])
def test_what_it_said_before_the_drop_stood_does_not_hush_the_drop(fall: float) -> None:
    story = Story()
    story.fall = fall
    story.judged(GOOD * 5)
    story.progress = 0.6
    story.judged(GOOD[:11])
    for _ in range(2):
        story.judged(GOOD)
        story.look(after=SETTLE)
    assert story.words.startswith("the judge cannot tell")

    story.drop()

    assert story.words.startswith("the judge is asked: 0 of")


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
    story = Story()
    story.judged(GOOD)
    story.drop()
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
    story = Story()
    story.judged(GOOD)
    story.drop()
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
    story = Story()
    story.judged(GOOD)
    story.drop()
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
    story = Story()
    story.judged(GOOD)
    story.drop()
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
    story = Story()
    story.judged(GOOD)
    story.drop()
    removed = SecondOpinions(None, None, settle=SETTLE)
    assert give_back(removed.table, story.opinions.table.pending()) == []

    removed.look_at(dict, lambda: {AGENT: frozenset({"1"})}, story.now + 1)

    assert removed.shown() == {}
    assert removed.requests == []


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
