"""One definition of a repeat: the same tool, the same arguments, the same result or error."""

import re
from typing import Any

import pytest

from evaluators.counts import amount
from evaluators.matching.repeats import (
    MOST_DISTINCT,
    RepeatCounts,
    call_counts,
    is_stuck,
    repeats,
)
from evaluators.model import JSON, Session, ToolCall
from evaluators.session.repeated_calls import RepeatCount, repeated_calls
from evaluators.trace.confidence import confidence
from evaluators.trace.step_efficiency import step_efficiency
from evaluators.trace.tool_correctness import tool_correctness
from tests.support.command import evaluated
from tests.support.evaluating import a_trace, a_turn
from tests.support.service import ROOT
from tests.support.table import for_each


def call(result: JSON = None, *, arguments: JSON = "build 7", error: str | None = None) -> ToolCall:
    return ToolCall(name="status", arguments=arguments, result=result, error=error)


def refused(text: str) -> ToolCall:
    return ToolCall(name="status", arguments="build 7", error=text, rejected="user")


@for_each(
    ("calls", "expected"),
    [
        ([call("running"), call("running")], 1),
        ([call("running"), call("done")], 0),
        ([call("running"), call("running"), call("done")], 0),
        ([call(error="timeout"), call(error="timeout"), call(error="timeout")], 2),
        ([call(error="timeout"), call("done")], 0),
        ([call("timeout"), call(error="timeout")], 0),
        ([call("x", arguments={"a": 1, "b": 2}), call("x", arguments={"b": 2, "a": 1})], 1),
        ([call("x", arguments={"a": 1}), call("x", arguments={"a": 2})], 0),
        ([call({"s": 1, "t": 2}), call({"t": 2, "s": 1})], 1),
        ([call(None), call(None)], 1),
        ([call("running"), call("running"), call(None)], 2),
        ([call(None), call("running"), call("done")], 0),
        ([call(error="timeout"), call(None)], 0),
        ([refused("no"), refused("never")], 1),
        ([refused("no"), call(None)], 0),
        ([refused("no"), call(error="timeout")], 0),
        ([call("x", arguments=None), call("x", arguments=None)], 0),
        ([call("half \ud83d"), call("half \ud83d")], 1),
    ],
)
def test_a_trace_and_its_session_count_the_same(calls: list[ToolCall], expected: int) -> None:
    assert len(repeats(calls)) == expected
    session = session_of(tuple(calls))
    assert session.metadata.get("repeated_calls", 0) == expected


def test_a_turn_is_replaced_by_its_revision_with_other_calls_and_a_dropped_one_counts_no_more() -> (
    None
):
    """The revision has as many calls, so that nothing else tells the two apart."""
    count = RepeatCount({})
    same, other = call_counts([call("x")] * 3), call_counts([call("x"), call("y"), call("z")])

    count.put(a_turn("t", 1, {}, tool_calls=3, call_counts=same))
    assert (count.counts, count.most) == (RepeatCounts(2, 0, 0, 0), 2)
    count.put(a_turn("u", 2, {}, tool_calls=3, call_counts=same))
    assert (count.counts, count.most) == (RepeatCounts(5, 0, 0, 0), 5)
    count.drop("u")
    assert (count.counts, count.most, count.calls) == (RepeatCounts(2, 0, 0, 0), 2, 3)
    count.put(a_turn("t", 1, {}, tool_calls=3, call_counts=other))
    assert (count.counts, count.most) == (RepeatCounts(0, 0, 3, 0), 0)
    count.drop("t")
    assert (count.counts, count.calls, count.compared) == (RepeatCounts(0, 0, 0, 0), 0, 0)


def test_calls_that_come_later_are_seen() -> None:
    """What is known of a trace is kept until the next one, of a list it is not."""
    calls = [call("x")]
    assert repeats(calls) == ()

    calls.append(call("x"))

    assert repeats(calls) == (calls[1],)
    assert repeats(tuple(calls)) == (calls[1],)
    assert repeats((call("x"),)) == ()


@for_each(
    "name,waits",
    [
        *((name, True) for name in ("sleep", "wait_30s", "browser.wait", "Wait")),
        *((name, False) for name in ("waiters", "get_waiting_list", "await_build")),
    ],
)
def test_waiting_in_between_repeats_nothing(name: str, waits: bool) -> None:
    calls = [ToolCall(name=name, arguments={"s": 30}, result="ok") for _ in range(2)]

    assert repeats(calls) == (() if waits else (calls[1],))
    assert bool(call_counts(calls)) is not waits


@for_each(
    "made,stuck",
    [
        *((made, True) for made in ("aaa", "ababab", "xyzaaa")),
        *((made, False) for made in ("aa", "abab", "aabaa", "aaba", "abacada", "aabb")),
    ],
)
def test_a_circle_is_repeats_without_a_new_call_in_between(made: str, stuck: bool) -> None:
    calls = [call("same", arguments=letter) for letter in made]

    assert is_stuck(calls, repeats(calls)) is stuck


def test_the_explanation_says_what_failed_what_is_progress_and_what_is_not_seen() -> None:
    """What repeats in a trace may be progress in its session, which then says so."""
    calls = [call("running"), call("running"), call("done"), call(arguments=None)]
    failing = [call(error="timeout") for _ in range(3)]

    assert RepeatCounts.of(calls).explanation(4, "trace") == (
        "0 of 4 tool calls of the trace repeated an earlier one;"
        " 3 asked the same with a changing result; of 1 the arguments were not exported"
    )
    assert RepeatCounts.of(failing).repeats() == "2 repeated an earlier one, 2 of them failed"
    assert RepeatCounts.of(calls[:2]).repeated == 1
    assert session_of((calls[0], calls[1]), (calls[2],)).explanation == (
        "0 of 3 tool calls of the session repeated an earlier one;"
        " 3 asked the same with a changing result"
    )


def test_arguments_that_were_not_exported_are_no_score() -> None:
    calls = (call("x", arguments=None), call("x", arguments=None))

    for score in (step_efficiency(a_trace(tool_calls=calls)), session_of(calls)):
        assert (score.state, score.reason, score.value) == ("not_applicable", "no_content", None)


def test_four_evaluators_tell_one_story() -> None:
    looping = (call("unknown"), call("unknown"), call("unknown"), call("x", arguments="other"))
    trace = a_trace(tool_calls=looping)

    assert "2 of 4 tool calls of the trace repeated" in str(step_efficiency(trace).explanation)
    assert "2 repeated" in str(tool_correctness(trace).explanation)
    assert "2 of 4 tool calls repeated" in str(confidence(trace).explanation)
    assert session_of(looping).metadata["repeated_calls"] == 2


def session_of(*turns: tuple[ToolCall, ...], **options: Any) -> Any:
    count = RepeatCount({})
    for at, calls in enumerate(turns):
        made = call_counts(calls)
        count.put(a_turn(str(at), at, {}, call_counts=made, tool_calls=len(calls)))
    session = Session(service="bot", session_id="s", agent="bot")
    return repeated_calls(session, count=count, **options)


def test_one_call_repeated_ten_times_over_the_session_is_flagged() -> None:
    turn = (call("unknown"), call("unknown"))
    found = session_of(*[turn] * 5, (call("unknown"),))

    assert (session_of(*[turn] * 5).value, found.value) == (1.0, 0.0)
    assert found.explanation == (
        "10 of 11 tool calls of the session repeated an earlier one; one call was repeated 10 times"
    )


def test_a_result_that_changes_in_a_later_turn_is_progress_and_a_few_repeats_each_are_fine() -> (
    None
):
    polling, turn = (call("running"),) * 12, tuple(call("x", arguments=n) for n in range(8))
    few = session_of(turn, turn, turn)

    assert session_of(polling).value == 0.0
    assert session_of(polling, (call("done"),)).metadata["repeated_calls"] == 0
    assert few.value == 1.0
    assert few.metadata == {"repeated_calls": 16, "most_of_one_call": 2, "tool_calls": 24}


def test_a_trace_of_very_many_calls_remembers_those_made_most() -> None:
    counts = call_counts([call(n) for n in range(2 * MOST_DISTINCT)] + [call(7)] * 3)

    assert len(counts) == MOST_DISTINCT
    assert max(each.times for each in counts) == 4


# --- one thing is not "1 things" --------------------------------------------------------------------------------------


@for_each("count,said", [(0, "0 turns"), (1, "1 turn"), (2, "2 turns"), (1200, "1,200 turns")])
def test_one_is_singular(count: int, said: str) -> None:
    assert amount(count, "turn") == said


def test_an_explanation_of_one_call_says_so() -> None:
    counts = RepeatCounts(repeated=0, failed=0, changing=0, uncompared=0)

    assert counts.explanation(1, "trace") == "0 of 1 tool call of the trace repeated an earlier one"


@pytest.mark.process
def test_no_explanation_of_a_recording_has_one_of_many() -> None:
    signals = evaluated(str(ROOT / "tests/data/captures/strands/session.otlp"))
    explanations = [each["explanation"] or "" for each in signals]

    assert [each for each in explanations if "of 1 tool call " in each]
    assert [each for each in explanations if re.search(r"\b1 \w+( \w+)?s\b", each)] == []
