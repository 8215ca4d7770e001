"""What the judge says of a drop and from how many sessions, how many it is asked about, and where it cannot answer."""

from collections.abc import Callable, Iterable

import pytest

from collector.config.tree import JudgeMore
from collector.records.signal import rfc3339
from collector.records.signal_batch import SignalHeader, SubjectHeader
from collector.watch.second_opinions import AGAIN, DAY, MOST, NearAlarm, SecondOpinions
from collector.watch.windows.incoming import Incoming
from tests.support.state_tables import give_back
from tests.support.table import for_each

AGENT = ("bot", "planner")
SETTLE = 300.0
AWAY = "away"
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
        self.version = "1"
        self.asked: list[tuple[str | None, int]] = []

    def judged(
        self, scores: Iterable[float], *, agrees: bool | None = None, reason: str = ""
    ) -> None:
        """`agrees`: asked again, it says the same, or (False) in every second session not; `reason`: it has failed."""
        for score in scores:
            other = 1.4 - score if agrees is False and self.sessions % 2 else score
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
                "failed" if reason else "scored",
                final=True,
                score=None if reason else score,
                first=True,
                sample="more",
                again=None if agrees is None else other,
                reason=None if reason == AWAY else reason or None,
            )
            self.opinions.take(self.agent, Incoming(subject, self.now), header, is_new=True)
            self.look()

    def look(self, after: float = 0.0) -> None:
        self.now += after
        alarm = NearAlarm("work_baseline/session", self.progress, self.sessions, self.dropped)
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


def dropped(before: Iterable[float] | None = None) -> Story:
    """A story whose scores have dropped, after these judged ones: 40 good ones if they are not given."""
    story = Story()
    story.judged(GOOD if before is None else before)
    story.drop()
    return story


GOOD, BAD = [0.9, 0.8, 0.95, 0.85] * 10, [0.5, 0.4, 0.9, 0.55] * 10


Step = Callable[[Story], None]


def judged(scores: Iterable[float], *, agrees: bool | None = None, reason: str = "") -> Step:
    return lambda story: story.judged(scores, agrees=agrees, reason=reason)


def near(progress: float) -> Step:
    """The alarm is so near from now on."""

    def step(story: Story) -> None:
        story.progress = progress

    return step


def look(story: Story) -> None:
    story.look(after=SETTLE)


def drop(story: Story) -> None:
    story.now += 1.0
    story.drop()


def drop_since_40_sessions(story: Story) -> None:
    story.drop()
    story.dropped = START + 400


def end(story: Story) -> None:
    story.dropped, story.progress = None, 0.0


DROPPED = [judged(GOOD), drop]
NEAR = [judged(GOOD), near(0.6)]
NO_LOSS_BEFORE = [judged(GOOD * 5), near(0.6), judged(GOOD[:11]), *[judged(GOOD), look] * 2]
UNSTABLE = judged(BAD[:20], agrees=False)
NO_ANSWER = "{0} have no answer, {0} for want of judge.budget"
STORIES: dict[str, tuple[list[Step], str | None, list[int]]] = {
    "20 sessions before the first look": (
        [*DROPPED, judged(BAD[:20])],
        "the judge is asked: 20 of 40 sessions judged, no verdict yet",
        [40],
    ),
    "a loss at the first look that shows it; the rest is not asked for": (
        [*DROPPED, judged(BAD[:20]), look],
        "the judge agrees: task_completion 0.88 -> 0.59 over 20 sessions",
        [40, 0],
    ),
    "no loss once one of a tenth is ruled out; asked for until then": (
        [judged(GOOD * 5), drop, *[judged(GOOD), look] * 4],
        "the judge sees no loss over 80 sessions",
        [40, 40],
    ),
    "sessions of before the question may be those that raised the drop": (
        [judged(GOOD), judged(BAD), drop_since_40_sessions, look],
        "the judge is asked: 0 of 40 sessions judged, no verdict yet",
        [40],
    ),
    "near for ten scores": ([*NEAR, judged(GOOD[:10])], None, []),
    "near for eleven, and not near any more": (
        [*NEAR, judged(GOOD[:11]), near(0.4), look],
        None,
        [40, 0],
    ),
    "no loss before the drop": (
        NO_LOSS_BEFORE,
        "the judge sees no loss over 80 sessions",
        [40, 40],
    ),
    "no loss that was seen before does not hush the drop": (
        [*NO_LOSS_BEFORE, drop],
        "the judge is asked: 0 of 40 sessions judged, no verdict yet",
        [40, 40, 40],
    ),
    "it did not agree with itself before the drop": (
        [judged(GOOD), UNSTABLE, *DROPPED, look],
        "the judge has no opinion: it does not agree with itself",
        [],
    ),
    "it does not agree with itself after the drop": (
        [*DROPPED, UNSTABLE, look],
        "the judge has no opinion: it does not agree with itself",
        [40, 0],
    ),
    "it agrees with itself": (
        [*DROPPED, judged(BAD[:20], agrees=True), look],
        "the judge agrees: task_completion 0.88 -> 0.59 over 20 sessions",
        [40, 0],
    ),
    "too few judged sessions before": (
        [judged(GOOD[:7]), drop],
        "the judge has no opinion: it had judged 7 sessions before, 20 are needed",
        [],
    ),
    "a judge that is set up while a drop stands": (
        [drop, judged(BAD)],
        "the judge has no opinion: it had judged 0 sessions before, 20 are needed",
        [],
    ),
    "its say on the next drop": (
        [drop, judged(BAD), end, judged(GOOD), drop],
        "the judge is asked: 0 of 40 sessions judged, no verdict yet",
        [40],
    ),
    "a judge that is away is asked once more for each session": (
        [*DROPPED, judged([0.0] * 12, reason=AWAY), lambda story: story.look(after=AGAIN)],
        "the judge is asked: 0 of 40 sessions judged, no verdict yet; 12 have no answer",
        [40, 28],
    ),
    **{
        f"a budget that ends after {answered}": (
            [*DROPPED, judged(BAD[:answered]), judged([0.0] * left, reason="budget"), look],
            f"the judge is asked: {answered} of 80 sessions judged, no verdict yet; {NO_ANSWER.format(left)}",
            [40, 40],
        )
        for answered, left in ((0, 40), (10, 30))
    },
}
"""What happens, what is then said, and about how many sessions it was asked."""


@for_each("name", STORIES)
def test_what_the_judge_says_of_a_drop_and_is_asked(name: str) -> None:
    steps, words, asked = STORIES[name]
    story = Story()
    for step in steps:
        step(story)

    assert (story.words if story.opinions.shown() else None) == words
    assert story.asked == [(None, count) for count in asked]


def test_a_day_asks_no_more_than_one_drop_may_cost() -> None:
    story = Story()
    story.judged(GOOD)
    for _ in range(12):
        story.drop()
        story.judged([0.7] * 20, reason=AWAY)
        end(story)
        story.look()

    asked = [sessions for _, sessions in story.asked if sessions]
    assert sum(asked) - 20 * story.asked.count((None, 0)) <= MOST


def test_two_agents_that_drop_at_once_have_an_opinion_each() -> None:
    opinions = made()
    one, other = Story(opinions), Story(opinions, ("bot", "writer"))
    for each in (one, other):
        each.judged(GOOD)
        each.drop()
    one.judged(BAD)
    other.judged([0.0] * 12, reason=AWAY)
    look(one)

    assert one.words.startswith("the judge agrees")
    assert other.words.startswith("the judge is asked: 0 of 40")


def test_a_version_that_is_rolled_back_while_it_is_asked_about_asks_for_nothing_more() -> None:
    story = Story(made(JudgeMore(new_version=40, drop=40)))
    story.judged(GOOD)
    story.version = "2"
    story.judged(BAD[:10])
    story.drop()
    asked = len(story.asked)

    story.version = "1"
    end(story)
    story.judged(GOOD)

    assert story.asked[asked:] == [(None, 0)]
    assert story.opinions.shown() == {}


def test_the_first_sessions_of_a_version_are_asked_about_and_what_the_one_before_lacks() -> None:
    story = Story(made(JudgeMore(new_version=40, drop=None)))
    story.look()
    story.judged(GOOD[:30])
    assert story.asked == [("1", 40)]

    story.opinions.look(AGENT, {"1", "2"}, [], story.now)

    wanted = {each.version: each.sessions for each in story.opinions.requests}
    assert wanted == {"1": 10, "2": 40}


def test_a_request_is_spread_over_partitions() -> None:
    story = Story(made(partitions=12))
    story.judged(GOOD)
    story.drop()

    assert story.asked == [(None, 4)]


def restarted(story: Story, after: SecondOpinions) -> SecondOpinions:
    assert give_back(after.table, story.opinions.table.pending()) == []
    story.opinions = after
    return after


def test_a_restart_goes_on_where_it_was() -> None:
    story = dropped()
    story.judged(BAD[:20])
    restarted(story, made())

    look(story)

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
    again = restarted(story, SecondOpinions(settings, evaluator, model=model, settle=SETTLE))

    story.look()

    assert again.shown()[AGENT].samples_before == kept
    assert story.asked == [(None, 40)]
    assert story.words.startswith("the judge is asked" if kept else "the judge has no opinion")


def test_a_judge_that_is_removed_says_nothing_and_asks_nothing() -> None:
    story = dropped()
    removed = restarted(story, SecondOpinions(None, None, settle=SETTLE))

    removed.look_at(dict, lambda: {AGENT: frozenset({"1"})}, story.now + 1)

    assert (removed.shown(), removed.requests) == ({}, [])
