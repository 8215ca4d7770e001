from dataclasses import replace

import pytest

from evaluators.matching.final_answer import gives_up, lacks_answer
from evaluators.model import ModelCall, ToolCall, Trace

ANSWERED = Trace(
    trace_id="t",
    service="bot",
    agent="planner",
    session_id="s",
    session_source="session.id",
    input="Where is order 7?",
    output="In Oslo.",
    model_calls=(ModelCall(span_id="m", output="In Oslo.", start_time_unix_nano=1),),
)
SILENT = replace(ANSWERED, output=None)


def with_last_call(**facts: object) -> Trace:
    call = ToolCall(name="find", start_time_unix_nano=2, **facts)  # pyright: ignore[reportArgumentType]
    return replace(SILENT, tool_calls=(call,))


def test_an_answer() -> None:
    assert lacks_answer(ANSWERED) is False


def test_no_answer() -> None:
    assert lacks_answer(SILENT) is True
    assert lacks_answer(replace(SILENT, output=" \n")) is True


def test_what_is_not_exported_is_not_known() -> None:
    assert lacks_answer(replace(SILENT, gaps=("no_content",))) is None
    assert lacks_answer(replace(SILENT, gaps=("no_root",))) is None
    assert lacks_answer(replace(SILENT, model_calls=())) is None


def test_a_hand_over_and_a_refusal_end_a_turn() -> None:
    assert lacks_answer(with_last_call(result="handed over")) is False
    assert lacks_answer(with_last_call(error="User rejected it", rejected="user")) is False


def test_a_turn_that_waits_for_an_approval_is_not_over() -> None:
    assert lacks_answer(with_last_call(unanswered=True)) is None


def test_a_turn_that_stops_at_a_failed_call_has_no_answer() -> None:
    assert lacks_answer(with_last_call(error="boom")) is True


@pytest.mark.parametrize(
    "answer",
    [
        "I couldn't find that order.",
        "I\u2019m unable to help with that.",
        "Unfortunately we were not able to reach the store.",
        "I can't access your account.",
        "Something went wrong, please try again later.",
    ],
)
def test_answers_that_give_up(answer: str) -> None:
    assert gives_up(replace(ANSWERED, output=answer)) is True


@pytest.mark.parametrize("answer", ["In Oslo.", "You can find it in the app.", "We could meet."])
def test_answers_that_do_not(answer: str) -> None:
    assert gives_up(replace(ANSWERED, output=answer)) is False


def test_without_an_answer_nothing_was_given_up() -> None:
    assert gives_up(SILENT) is None
