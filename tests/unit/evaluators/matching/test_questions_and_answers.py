"""Which questions ask for the same, and which answers are missing or give up."""

from dataclasses import replace

from evaluators.matching.final_answer import gives_up, lacks_answer
from evaluators.matching.questions import asked_again
from evaluators.model import ModelCall, ToolCall, Trace
from tests.support.evaluating import a_trace
from tests.support.table import for_each

QUESTION = "Has my order 4711 shipped?"


@for_each(
    ("question", "again"),
    [
        ("I am asking again: has my order 4711 shipped yet?", True),
        ("Hello?? has my order 4711 shipped or not?", True),
        ("My order 4711?", False),
        ("Has order 4711 shipped?", True),
        (None, True),
        ("Has my order 4712 shipped?", False),
        ("What is the weather in Berlin?", False),
        ("Has my invoice been paid?", False),
        ("", False),
        (f"{QUESTION} {'word ' * 300}", False),
    ],
)
def test_a_question_asks_another_one_again(question: str | None, *, again: bool) -> None:
    assert asked_again(question, [QUESTION]) == (frozenset({0}) if again else frozenset())


OTHERS = [
    ("Translate into German: I like dogs", "Translate into German: I like cats"),
    ("Is 7 a prime number?", "Is 9 a prime number?"),
    ("Explain option A", "Explain option B"),
    ("Turn on the light", "Turn off the light"),
    ("Was ist die Hauptstadt von Spanien?", "Was ist die Hauptstadt von Italien?"),
    ("\u4f60\u597d", "\u518d\u89c1"),
    *((text, text) for text in ("???", "thanks", "Continue!", "another one", "")),
]
"""The same words about another thing, and what asks for nothing."""


@for_each("one,other", OTHERS)
def test_what_asks_for_something_else_or_nothing_asks_nothing_again(one: str, other: str) -> None:
    assert asked_again(one, [other, other]) == asked_again(other, [one]) == frozenset()


def test_questions_that_ask_again_in_different_words_meet_in_what_they_repeat() -> None:
    earlier = [QUESTION, f"Hello?? {QUESTION}", "How are you?", None]

    assert asked_again(f"Last time: {QUESTION}", earlier) == {0, 1, 3}
    assert asked_again(f"Last time: {QUESTION}", earlier[1:3]) == frozenset()


SAID = ModelCall(span_id="m", output="In Oslo.", start_time_unix_nano=1)
ANSWERED = a_trace(input="Where is order 7?", output="In Oslo.", model_calls=(SAID,))
SILENT = replace(ANSWERED, output=None)


def with_last_call(**facts: object) -> Trace:
    call = ToolCall(name="find", start_time_unix_nano=2, **facts)  # pyright: ignore[reportArgumentType]
    return replace(SILENT, tool_calls=(call,))


@for_each(
    "trace,expected",
    [
        (ANSWERED, False),
        (SILENT, True),
        (replace(SILENT, output=" \n"), True),
        # what is not exported is not known
        (replace(SILENT, gaps=("no_content",)), None),
        (replace(SILENT, gaps=("no_root",)), None),
        (replace(SILENT, model_calls=()), None),
        # a hand-over and a refusal end a turn, an approval that it waits for does not
        (with_last_call(result="handed over"), False),
        (with_last_call(error="User rejected it", rejected="user"), False),
        (with_last_call(unanswered=True), None),
        (with_last_call(error="boom"), True),
    ],
)
def test_whether_an_answer_is_missing(trace: Trace, expected: bool | None) -> None:
    assert lacks_answer(trace) is expected


@for_each(
    "answer,expected",
    [
        ("I couldn't find that order.", True),
        ("I\u2019m unable to help with that.", True),
        ("Unfortunately we were not able to reach the store.", True),
        ("I can't access your account.", True),
        ("Something went wrong, please try again later.", True),
        ("In Oslo.", False),
        ("You can find it in the app.", False),
        ("We could meet.", False),
        (None, None),
    ],
)
def test_answers_that_give_up(answer: str | None, expected: bool | None) -> None:
    assert gives_up(replace(ANSWERED, output=answer)) is expected
