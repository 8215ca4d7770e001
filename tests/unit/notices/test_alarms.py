"""Each target is sent each alert once, whatever comes between."""

import pytest

from collector.notices.alarms import LONGEST, MOST_WAITING, Alarms
from collector.notices.conditions import EARLY, OPINION
from collector.notices.series import GAP, SeriesSample
from collector.records.notices import Labels, decode_alarm
from tests.support.notices import BROKEN, DROPPED, PLACE, SLOW, Looked

FIRES, ENDS = ("AgentFault", "firing"), ("AgentFault", "resolved")


def pages_only(labels: Labels) -> bool:
    return dict(labels)["severity"] == "page"


def stand(*names: str) -> Looked:
    return Looked(Alarms({name: lambda _: True for name in names or ("chat",)}))


def restarted(before: Looked, *names: str) -> Looked:
    """What another process reads back."""
    after = stand(*names)
    records = [value for value in before.alarms.pending().values() if value is not None]
    after.alarms.restore(decode_alarm(each) for each in records)
    return after


def test_a_fault_is_sent_once_and_its_end_once() -> None:
    chat = stand()

    chat.look(0, BROKEN)
    assert chat.sent_to("chat") == [FIRES]
    chat.look(15, BROKEN)
    assert chat.sent_to("chat") == []
    chat.look(30)
    assert chat.sent_to("chat") == [ENDS]
    chat.look(45)
    assert chat.sent_to("chat") == []
    assert dict(chat.alarms.counts) == {("chat", "sent"): 2}


def test_a_drop_is_sent_when_it_has_held_for_a_minute() -> None:
    chat = stand()

    for second in (0, 15, 30, 45):
        chat.look(second, DROPPED)
        assert chat.sent_to("chat") == []
    chat.look(60, DROPPED)

    assert chat.sent_to("chat") == [("AgentScoreDrop", "firing")]


def test_a_fault_is_sent_within_the_minute_that_begins_with_its_first_session() -> None:
    chat = stand()

    for second in (-20, 0, 20, 24):
        chat.look(second, BROKEN._replace(since=-20.0))
        assert chat.sent_to("chat") == []
    assert chat.alarms.wait(20, 15) == 40 - EARLY - 20
    assert chat.alarms.wait(0, 15) == 15
    chat.look(40 - EARLY, BROKEN._replace(since=-20.0))

    assert chat.sent_to("chat") == [FIRES]


def test_a_drop_does_not_begin_to_fire_beside_a_fault_that_will() -> None:
    chat = stand()
    beside = DROPPED._replace(only_goes_on=True)

    chat.look(0, DROPPED)
    chat.look(45, beside, BROKEN._replace(since=20.0))
    chat.look(60, beside, BROKEN._replace(since=20.0))
    assert chat.sent_to("chat") == []
    chat.look(80, BROKEN._replace(since=20.0))

    assert chat.sent_to("chat") == [FIRES]


def test_a_drop_that_fires_goes_on_until_its_fault_is_sent() -> None:
    chat = stand()
    chat.look(0, DROPPED)
    chat.look(60, DROPPED)
    chat.sent_to("chat")

    chat.look(65, DROPPED._replace(only_goes_on=True), BROKEN._replace(since=40.0))
    assert chat.sent_to("chat") == []
    chat.look(100, BROKEN._replace(since=40.0))

    assert chat.sent_to("chat") == [FIRES, ("AgentScoreDrop", "resolved")]


def test_a_fault_that_is_over_within_a_minute_wakes_nobody() -> None:
    chat = stand()

    chat.look(0, BROKEN._replace(since=-30.0))
    chat.look(20)
    chat.look(60)

    assert chat.sent_to("chat") == []


def test_a_drop_that_gives_way_ends_after_its_fault_was_sent_and_names_it() -> None:
    chat = stand()
    chat.look(0, DROPPED)
    chat.look(60, DROPPED)
    assert chat.sent_to("chat") == [("AgentScoreDrop", "firing")]

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
    assert chat.sent_to("chat") == [("AgentScoreDrop", "firing")]

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


def test_what_ends_before_its_time_is_not_sent() -> None:
    chat = stand()

    chat.look(0, DROPPED)
    chat.look(45)
    chat.look(60, DROPPED)
    chat.look(90, DROPPED)

    assert chat.sent_to("chat") == []
    assert chat.alarms.pending() == {}


def test_what_began_and_ended_while_a_target_was_away_is_superseded() -> None:
    chat = stand("chat", "oncall")

    chat.look(0, BROKEN)
    assert chat.sent_to("oncall") == [FIRES]
    chat.look(15)

    assert chat.sent_to("chat") == []
    assert chat.sent_to("oncall") == [ENDS]
    assert chat.alarms.counts["chat", "superseded"] == 1


def test_an_end_that_was_not_sent_to_a_target_is_dropped_when_the_alert_goes_on() -> None:
    chat = stand()

    chat.look(0, BROKEN)
    chat.sent_to("chat")
    chat.look(15)
    chat.look(30, BROKEN)

    assert chat.sent_to("chat") == []
    chat.look(45)
    assert chat.sent_to("chat") == [ENDS]


def test_a_fault_that_comes_again_is_another_notice() -> None:
    chat = stand()
    said: list[tuple[str, str]] = []

    for second, holds in ((0, True), (15, False), (30, True), (45, False)):
        chat.look(second, *[BROKEN] * holds)
        said += chat.sent_to("chat")
        chat.alarms.pending()

    assert said == [FIRES, ENDS, FIRES, ENDS]


def test_a_target_is_sent_what_it_asked_for() -> None:
    both = Looked(Alarms({"oncall": pages_only, "chat": lambda _: True}))

    both.look(0, BROKEN, SLOW)

    assert both.sent_to("oncall") == [FIRES]
    assert both.sent_to("chat") == [FIRES, FIRES]
    both.look(15)
    assert both.sent_to("oncall") == [ENDS]
    both.sent_to("chat")
    assert set(both.alarms.pending().values()) == {None}


def test_a_restart_tells_nothing_twice_and_forgets_no_end() -> None:
    before = stand("chat", "oncall")
    before.look(0, BROKEN)
    before.sent_to("chat")

    after = restarted(before, "chat", "oncall")
    after.look(100, BROKEN)

    assert after.sent_to("chat") == []
    assert after.sent_to("oncall") == [FIRES]
    after.look(115)
    assert after.sent_to("chat") == [ENDS]
    assert after.sent_to("oncall") == [ENDS]


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


def test_an_end_that_waits_is_sent_after_a_restart() -> None:
    before = stand()
    before.look(0, BROKEN)
    before.sent_to("chat")
    before.look(15)

    assert restarted(before, "chat").sent_to("chat") == [ENDS]


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


def test_texts_are_those_of_the_newest_look() -> None:
    chat = stand()
    chat.look(0, BROKEN)

    (alarm,) = chat.alarms.due("chat")

    assert alarm.summary == "clerk (shop): find_order fails"
    assert alarm.page == f"/?service={PLACE['service']}&agent={PLACE['agent']}"
