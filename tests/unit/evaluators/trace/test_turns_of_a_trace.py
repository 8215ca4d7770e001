"""A conversation that is one trace loops as one of several traces does: each turn is compared with those before it."""

import pytest

from evaluators.model import InnerTurn, Previous, Score, ToolCall
from evaluators.resources import History
from evaluators.trace.loop_detection import loop_detection
from tests.support.evaluating import HashEmbedder, a_trace

SORRY = "I am sorry, I could not find the status of your order. Please try again later."
ASKED = ("Has my order 4711 shipped?", "Again: has my order 4711 shipped?", "Has my order 4711?")


def turns(*said: tuple[str, str | None]) -> tuple[InnerTurn, ...]:
    return tuple(
        InnerTurn(
            span_id=f"s{number}",
            input=question,
            output=answer,
            start_time_unix_nano=number * 10,
            end_time_unix_nano=number * 10 + 5,
        )
        for number, (question, answer) in enumerate(said, start=1)
    )


def score(*said: tuple[str, str | None], history: History = History(), **more: object) -> Score:  # noqa: B008 - frozen
    trace = a_trace(turns=turns(*said), input=said[0][0], output=said[-1][1], **more)
    return loop_detection(trace, history=history, embedder=HashEmbedder())


LOOP = tuple((question, SORRY) for question in ASKED)


def test_the_same_answer_in_three_turns_is_a_loop_that_names_its_turn() -> None:
    found = score(*LOOP)

    assert (found.value, found.risk) == pytest.approx((0.0, 1.0))
    assert (found.success, found.evidence) == (None, ("s3",))
    assert (found.explanation or "").startswith("turn 3 of 3: ")


def test_a_loop_that_ended_before_the_last_turn_is_found() -> None:
    assert score(*LOOP, ("Thanks anyway", "You are welcome, have a nice day.")).evidence == ("s3",)


def test_turns_that_say_something_else_or_nothing_are_no_loop() -> None:
    found = score(("And Madrid?", "It is sunny in Madrid."), ("And Oslo?", "Snow falls up north."))
    silent = score(("Hello?", None), ("Hello?", None))

    assert found.risk == 0.0
    assert (found.value or 0) > 0.5
    assert (silent.state, silent.assumed) == ("not_applicable", 1.0)


def test_a_new_look_at_the_facts_within_the_turn_excuses_it() -> None:
    look = ToolCall(name="find", arguments={"a": 1}, result="lost", start_time_unix_nano=32)
    earlier = ToolCall(name="find", arguments={"a": 1}, result="lost", start_time_unix_nano=12)

    found = score(*LOOP, tool_calls=(earlier, look))

    assert (found.risk, found.success) == (0.0, True)


def test_the_first_turn_is_compared_with_the_traces_before() -> None:
    before = (Previous(trace_id=str(n), digest="d", output=SORRY, input=ASKED[n]) for n in range(2))

    found = score(LOOP[2], ("Bye", "Good bye to you."), history=History(tuple(before)))

    assert found.risk == pytest.approx(1.0)
    assert found.evidence == ("s1",)
