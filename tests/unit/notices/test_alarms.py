"""Each target is sent each alert once, whatever comes between."""

from collections.abc import Mapping, Sequence

import pytest

from collector.notices.alarms import LONGEST, MOST_WAITING, Alarms
from collector.notices.conditions import EARLY, OPINION, FoundAlert
from collector.notices.series import GAP, SeriesSample
from collector.records.notices import Labels, decode_alarm
from tests.support.notices import BROKEN, DROPPED, PLACE, SLOW, Looked

FIRES, ENDS = ("AgentFault", "firing"), ("AgentFault", "resolved")
DROPS, RECOVERS = ("AgentScoreDrop", "firing"), ("AgentScoreDrop", "resolved")
BESIDE = DROPPED._replace(only_goes_on=True)
Story = Sequence[tuple[float, Sequence[FoundAlert], Sequence[tuple[str, str]]]]
"""A second, what holds then, and what the target is sent."""


def began(second: float) -> FoundAlert:
    return BROKEN._replace(since=second)


STORIES: Mapping[str, Story] = {
    "a fault is sent once, and its end once": [
        *((0, [BROKEN], [FIRES]), (15, [BROKEN], []), (30, [], [ENDS]), (45, [], [])),
    ],
    "a drop is sent when it has held for a minute": [
        *((second, [DROPPED], []) for second in (0, 15, 30, 45)),
        (60, [DROPPED], [DROPS]),
    ],
    "a drop does not begin to fire beside a fault that will": [
        *((0, [DROPPED], []), (45, [BESIDE, began(20)], []), (60, [BESIDE, began(20)], [])),
        (80, [began(20)], [FIRES]),
    ],
    "a drop that fires goes on until its fault is sent": [
        *((0, [DROPPED], []), (60, [DROPPED], [DROPS]), (65, [BESIDE, began(40)], [])),
        (100, [began(40)], [FIRES, RECOVERS]),
    ],
    "a fault that is over within a minute wakes nobody": [
        *((0, [began(-30)], []), (20, [], []), (60, [], [])),
    ],
    "what ends before its time is not sent": [
        *((0, [DROPPED], []), (45, [], []), (60, [DROPPED], []), (90, [DROPPED], [])),
    ],
    "a fault that comes again is another notice": [
        *((0, [BROKEN], [FIRES]), (15, [], [ENDS]), (30, [BROKEN], [FIRES]), (45, [], [ENDS])),
    ],
}


def pages_only(labels: Labels) -> bool:
    return dict(labels)["severity"] == "page"


def stand(*names: str) -> Looked:
    return Looked(Alarms({name: lambda _: True for name in names or ("chat",)}))


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_a_target_is_sent(story: Story) -> None:
    chat, stored, said = stand(), dict[bytes, bytes | None](), list[tuple[str, str]]()

    for second, holds, sent in story:
        chat.look(second, *holds)
        assert chat.sent_to("chat") == sent, second
        said += sent
        stored |= chat.alarms.pending()

    assert bool(stored) == bool(said), "what has not fired is not kept"


def restarted(before: Looked, *names: str) -> Looked:
    """What another process reads back."""
    after = stand(*names)
    records = [value for value in before.alarms.pending().values() if value is not None]
    after.alarms.restore(decode_alarm(each) for each in records)
    return after


def test_a_fault_is_sent_within_the_minute_that_begins_with_its_first_session() -> None:
    chat = stand()

    for second in (-20, 0, 20, 24):
        chat.look(second, BROKEN._replace(since=-20.0))
        assert chat.sent_to("chat") == []
    assert chat.alarms.wait(20, 15) == 40 - EARLY - 20
    assert chat.alarms.wait(0, 15) == 15
    chat.look(40 - EARLY, BROKEN._replace(since=-20.0))

    assert chat.sent_to("chat") == [FIRES]


def test_a_drop_that_gives_way_ends_after_its_fault_was_sent_and_names_it() -> None:
    chat = stand()
    chat.look(0, DROPPED)
    chat.look(60, DROPPED)
    assert chat.sent_to("chat") == [DROPS]

    chat.look(75, BROKEN)
    assert [dict(each.labels)["alertname"] for each in chat.alarms.due("chat")] == [
        "AgentFault",
        "AgentScoreDrop",
    ]
    end = chat.alarms.due("chat")[1]

    assert end.state == "resolved"
    assert end.description.endswith("It is now: clerk (shop): find_order fails.")


def test_a_drop_in_which_the_judge_sees_no_loss_ends_and_says_so() -> None:
    chat = stand()
    chat.look(0, DROPPED)
    chat.look(60, DROPPED)
    assert chat.sent_to("chat") == [DROPS]

    opinion = SeriesSample("spanwise_drop_second_opinion", PLACE, 0.0)
    chat.series.take([opinion], 75)
    chat.alarms.look((), chat.series)

    (end,) = chat.alarms.due("chat")
    assert end.state == "resolved"
    assert end.description.endswith("It is quiet now: the judge sees no loss.")


@pytest.mark.parametrize(
    ("opinion", "said"),
    [
        (None, "No judge is set up: set `judge.model` to get a second opinion on a drop."),
        (-1.0, "The judge was asked and is undecided"),
        (1.0, "The judge agrees"),
    ],
)
def test_a_drop_says_what_the_judge_says_or_how_to_get_one(
    opinion: float | None, said: str
) -> None:
    chat = stand()
    samples = [] if opinion is None else [SeriesSample(OPINION, PLACE, opinion)]
    for second in (0, 60):
        chat.series.take(samples, second)
        chat.alarms.look([DROPPED], chat.series)

    (begun,) = chat.alarms.due("chat")
    assert said in begun.description
    assert ("No judge" in begun.description) is (opinion is None)


def test_what_began_and_ended_while_a_target_was_away_is_superseded() -> None:
    chat = stand("chat", "oncall")

    chat.look(0, BROKEN)
    assert chat.sent_to("oncall") == [FIRES]
    chat.look(15)

    assert chat.sent_to("chat") == []
    assert chat.sent_to("oncall") == [ENDS]
    assert chat.alarms.counts["chat", "superseded"] == 1


def test_a_target_is_sent_what_it_asked_for() -> None:
    both = Looked(Alarms({"oncall": pages_only, "chat": lambda _: True}))

    both.look(0, BROKEN, SLOW)

    assert both.sent_to("oncall") == [FIRES]
    assert both.sent_to("chat") == [FIRES, FIRES]
    both.look(15)
    assert both.sent_to("oncall") == [ENDS]
    both.sent_to("chat")
    assert set(both.alarms.pending().values()) == {None}


def test_what_is_not_read_back_yet_is_no_end() -> None:
    before = stand()
    before.look(0, BROKEN)
    before.sent_to("chat")

    after = restarted(before, "chat")
    after.look(100)
    assert after.sent_to("chat") == []
    after.look(100 + GAP - 1)
    assert after.sent_to("chat") == []
    after.look(100 + GAP)
    assert after.sent_to("chat") == [ENDS]


def test_a_target_that_is_gone_keeps_nothing() -> None:
    before = stand("chat")
    before.look(0, BROKEN)
    before.sent_to("chat")
    before.look(15)

    after = restarted(before, "oncall")
    after.look(100)

    assert after.sent_to("oncall") == []
    assert list(after.alarms.pending().values()) == [None]


def test_what_could_not_be_sent_for_an_hour_is_dropped_and_so_is_its_end() -> None:
    chat = stand()
    chat.look(0, BROKEN)

    assert chat.alarms.expire("chat", LONGEST) == 0
    assert chat.alarms.expire("chat", LONGEST + 1) == 1
    chat.look(LONGEST + 15)

    assert chat.sent_to("chat") == []
    assert dict(chat.alarms.counts) == {("chat", "dropped"): 1}
    assert list(chat.alarms.pending().values()) == [None]


def test_at_most_256_notices_wait() -> None:
    chat = stand()
    many = [BROKEN._replace(labels={**BROKEN.labels, "tool": f"tool-{n}"}) for n in range(300)]

    chat.look(0, *many)

    assert len(chat.alarms.due("chat")) == MOST_WAITING
    assert chat.alarms.counts["chat", "dropped"] == 300 - MOST_WAITING
