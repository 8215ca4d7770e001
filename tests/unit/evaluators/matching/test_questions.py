"""Which questions ask for the same."""

from evaluators.matching.questions import asked_again
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
