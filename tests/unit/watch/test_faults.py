"""What fault watches are fed with, what they show, and what of it survives."""

import pytest
from msgspec.structs import replace

from collector.log.port import WINDOWS
from collector.records.codec import encode
from collector.records.standing import FailingTool
from collector.watch.faults.agent_faults import ENDED_SHOWN, MAX_TOOLS
from evaluators.matching.tool_uses import LONGEST
from evaluators.uses import LONGEST_NAME, SessionUses, ToolUse
from tests.support.fault_watches import (
    AGENT,
    FAILED,
    FINE,
    SETTLE,
    Watcher,
    record_of,
    used,
    work,
)
from tests.support.state_tables import state_key

PAST = [FINE] * 40


async def test_a_tool_that_begins_to_fail_is_named_with_its_numbers() -> None:
    watcher = Watcher()
    await watcher.live(*PAST)
    began = watcher.log.clock.now

    await watcher.live(*[FAILED] * 12, begin=40)

    (fault,) = watcher.shown().values()
    assert (fault.fault, fault.tool, fault.error) == ("tool_failed", "find_order", "TimeoutError")
    assert (fault.uses, fault.failures, fault.uses_before, fault.failures_before) == (12, 12, 40, 0)
    assert (fault.since, fault.pages) == (began, True)
    assert fault.sessions == tuple(f"s-{number}" for number in range(51, 43, -1))
    assert watcher.faults.facts()["failing_always"] == {}
    labels = {"service": "bot", "agent": "planner", "fault": "tool_failed", "tool": "find_order"}
    assert watcher.value("detected", **labels) == 1
    assert watcher.value("since_timestamp_seconds", **labels) == began
    for period, uses, failures in (("since", 12, 12), ("before", 40, 0)):
        assert watcher.value("uses", period=period) == uses
        assert watcher.value("failures", period=period) == failures


async def test_a_turn_that_has_entered_is_a_use_of_no_other_agent() -> None:
    watcher = Watcher()
    await watcher.live(*PAST)

    await watcher.say(work("s-0", FAILED, agent="writer", seen=watcher.log.clock.now))

    assert [each.labels for each in watcher.faults] == [AGENT]


async def test_it_says_0_for_an_hour_after_it_is_over_and_then_nothing() -> None:
    watcher = Watcher()
    await watcher.live(*PAST, *[FAILED] * 12)
    await watcher.live(*PAST, begin=100)

    assert watcher.shown() == {}
    assert watcher.value("detected", fault="tool_failed") == 0
    assert watcher.value("uses", period="since") is None

    await watcher.live(*[FINE] * int(ENDED_SHOWN / 60), begin=200)
    assert watcher.value("detected", fault="tool_failed") is None


@pytest.mark.parametrize(
    ("turns", "learned"),
    [
        (
            [(0.0, FINE), (60.0, FINE), (90.0, FAILED), (120.0, FAILED), (150.0, FINE)],
            [(1, 0), (1, 0), (2, 1), (2, 1), (2, 1)],
        ),
        ([(0.0, FINE), (SETTLE - 1, FINE), (SETTLE, FINE)], [(1, 0), (1, 0), (2, 0)]),
    ],
)
async def test_a_session_enters_a_watch_once_in_settle_and_once_more_when_it_fails(
    turns: list[tuple[float, SessionUses]], learned: list[tuple[int, int]]
) -> None:
    """Turns at these seconds, and (uses, failures) of the watch after each."""
    watcher = Watcher()
    began = watcher.log.clock.now
    for number, (second, uses) in enumerate(turns):
        watcher.log.clock.now = now = began + second
        await watcher.enter(work("s", uses, turn=f"t-{number}", seen=now))
        assert watcher.learned() == learned[number]


async def test_a_revised_trace_enters_only_what_its_session_had_not_used() -> None:
    watcher = Watcher()
    await watcher.say(work("s", FINE, turn="t"))
    both = SessionUses(tools=(*FAILED.tools, *used("book").tools))
    watcher.log.clock.now += 10 * SETTLE
    revised = work("s", both, turn="t", revised=1, revision=2, seen=watcher.log.clock.now)
    await watcher.enter(revised, revised)

    assert (watcher.learned(), watcher.learned("book")) == ((1, 0), (1, 0))
    assert not watcher.agent.settling.held


async def test_a_session_that_changes_its_agent_enters_for_each_what_it_used_with_it() -> None:
    watcher = Watcher()
    await watcher.say(work("s", FAILED, turn="t-1"))
    await watcher.enter(work("s", FINE, agent="writer", revision=2, turn="t-2"))

    assert {each.labels[1]: each.settling.entered.count for each in watcher.faults} == {
        "planner": 1,
        "writer": 1,
    }


@pytest.mark.parametrize(
    ("fault", "bad", "good"),
    [
        ("tool_empty", used(empty=True), FINE),
        ("repeated_calls", used(repeated=True), FINE),
        ("tool_slow", used(slowest=9.0), used(slowest=1.0)),
        ("model_failed", SessionUses(model_failed=True), SessionUses(model_failed=False)),
        ("no_answer", SessionUses(no_answer=True), SessionUses(no_answer=False)),
        ("gave_up", SessionUses(gave_up=True), SessionUses(gave_up=False)),
        ("answer_cut", SessionUses(answer_cut=True), SessionUses(answer_cut=False)),
        ("answer_blocked", SessionUses(answer_blocked=True), SessionUses(answer_blocked=False)),
        ("cancelled", SessionUses(cancelled=True), SessionUses(cancelled=False)),
    ],
)
async def test_every_fault_is_noticed_and_no_other_one_with_it(
    fault: str, bad: SessionUses, good: SessionUses
) -> None:
    watcher = Watcher()

    await watcher.live(*[good] * 60, *[bad] * 15)

    ((found, _),) = watcher.shown()
    assert found == fault


async def test_what_a_session_does_not_tell_is_no_use() -> None:
    watcher = Watcher()
    silent = SessionUses(tools=used(returned=False).tools)

    await watcher.live(*[silent] * 60)

    watched = {fault for fault, _ in watcher.agent._watches}
    assert watched == {"tool_failed", "repeated_calls"}


async def test_a_call_twice_as_long_as_usual_is_not_slow_where_calls_vary() -> None:
    watcher = Watcher()
    lengths = [used(slowest=1.0 + 9.0 * (number % 10 == 0)) for number in range(200)]

    await watcher.live(*lengths)

    assert watcher.shown() == {}


async def test_a_hundred_thousand_tool_names_raise_nothing_twice_and_take_no_more_room() -> None:
    watcher = Watcher()
    await watcher.live(*PAST, *[FAILED] * 10, every=20)
    shown = watcher.shown()
    for many in range(100):
        names = (f"tool-{many}-{number}" for number in range(1000))
        one = SessionUses(tools=tuple(ToolUse(name, 1, failed=True) for name in names))
        await watcher.say(work(f"many-{many}", one, seen=watcher.log.clock.now))
    await watcher.enter()

    assert watcher.shown() == shown
    assert {fault for fault, _ in shown} == {"tool_failed"}
    assert watcher.agent.size <= 4 * (MAX_TOOLS + 1) + 6
    assert len(encode(watcher.agent.state())) < 100_000


@pytest.mark.parametrize("hours", [-2, 2])
async def test_a_clock_that_steps_and_spans_that_come_late_raise_what_a_steady_clock_does(
    hours: int,
) -> None:
    """`seen` is log time, which goes on by elapsed seconds; turns of one moment come in any order."""
    shown: list[set[tuple[str, str]]] = []
    for step in (0, hours):
        watcher = Watcher()
        await watcher.live(*PAST, every=20)
        watcher.log.clock.now += 3600 * step
        late = [work(f"late-{each}", FAILED, seen=watcher.log.clock.now) for each in range(12)]
        await watcher.say(*(late[::-1] if step else late))
        await watcher.say(*late)  # the same again
        watcher.log.clock.now += 1 + 3600 * max(0, -step)
        await watcher.step()
        shown.append(set(watcher.shown()))
        (fault,) = watcher.shown().values()
        assert (fault.failures, fault.failures_before) == (12, 0)

    assert shown == [{("tool_failed", "find_order")}] * 2


async def test_tools_without_watches_of_their_own_share_one() -> None:
    watcher = Watcher()
    own = [used(f"tool-{number:02}") for number in range(MAX_TOOLS)] * 3
    rare = [used(f"rare-{number}") for number in range(60)]

    await watcher.live(*own, *rare, every=1)

    assert watcher.agent._watches["tool_failed", "_other"].watch.state.past.uses == 60


async def test_a_tool_that_is_used_more_takes_the_watches_of_one_that_is_used_less() -> None:
    watcher = Watcher()
    await watcher.live(*[used(f"tool-{number:02}") for number in range(MAX_TOOLS)], every=1)

    watcher.log.clock.now += 7200
    await watcher.live(*[FINE] * 5, begin=100, every=10)

    assert ("tool_failed", "find_order") in watcher.agent._watches
    await watcher.reader.finish()
    assert watcher.value("watches_dropped_total", reason="max_tools") == 3, "all of its watches"


async def test_an_agent_without_labels_is_not_watched_and_one_that_loses_them_is_forgotten() -> (
    None
):
    watcher = Watcher(agents={AGENT})
    await watcher.live(*PAST)
    await watcher.say(work("other", FINE, agent="writer"))
    assert [each.labels for each in watcher.faults] == [AGENT]

    watcher.agents = set()
    await watcher.reader.finish()

    assert list(watcher.faults) == []
    assert (watcher.value("watches_dropped_total", reason="forgotten") or 0) > 0
    stored = [each async for each in watcher.log.replay(WINDOWS, 0)]
    assert not [each for each in stored if each.key == state_key("faults", AGENT) and each.value]


async def test_too_many_sessions_at_once_are_left_out_and_counted() -> None:
    watcher = Watcher()
    name, error = "t" * (LONGEST_NAME - 3), "E" * LONGEST
    tools = [used(f"{name}-{number:02}", failed=True, error=error) for number in range(32)]
    many = replace(FINE, tools=tuple(each.tools[0] for each in tools))

    await watcher.log.write(
        [record_of(work(f"{'s' * 250}-{number}", many)) for number in range(400)]
    )
    for _ in range(10):
        await watcher.step()

    assert (watcher.value("sessions_dropped_total", reason="max_settling") or 0) > 0
    assert len(encode(watcher.agent.state())) < 1_000_000


async def test_a_long_session_id_takes_no_more_room_and_is_not_named() -> None:
    watcher = Watcher()
    await watcher.live(*PAST)
    for number in range(12):
        long = "s" * 100_000 + str(number)
        await watcher.say(work(long, FAILED, seen=watcher.log.clock.now))
        watcher.log.clock.now += 60
    await watcher.step()

    (fault,) = watcher.shown().values()
    assert (fault.uses, fault.sessions) == (12, ())
    assert len(encode(watcher.agent.state())) < 50_000


async def test_a_tools_name_brings_no_markup_into_labels() -> None:
    watcher = Watcher()
    hostile = "<b onload=x>[a](javascript:1)`"

    await watcher.live(*[used(hostile)] * 40, *[used(hostile, failed=True)] * 12)

    (fault,) = watcher.shown().values()
    assert not set("<>[]()`=") & set(fault.tool)
    assert fault.tool.startswith("_b onload")


async def test_a_session_that_no_turn_changed_enters_nothing() -> None:
    watcher = Watcher()

    await watcher.say(work("s", None))
    await watcher.step()

    assert list(watcher.faults) == []


async def test_a_tool_that_fails_from_its_first_use_is_no_fault_and_is_listed_apart() -> None:
    """Its failures are its past."""
    watcher = Watcher()
    rarely = used("look_up", failed=True), used("look_up"), used("look_up")
    await watcher.live(*[FAILED] * 9, *rarely * 10, FINE)

    (of_agent,) = watcher.faults.facts()["failing_always"].values()
    assert watcher.shown() == {}
    assert of_agent == (FailingTool(tool="find_order", uses=10, failures=9),)

    await watcher.live(*[FINE] * 20, begin=100)
    assert watcher.faults.facts()["failing_always"] == {}
