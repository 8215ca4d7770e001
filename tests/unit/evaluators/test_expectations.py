"""The expectations file: the first entry whose match fits wins."""

from typing import Any

import pytest

from evaluators.errors import ExpectationError
from evaluators.expectations import Expectation, Expectations, ExpectedTool
from evaluators.model import Score, ToolCall, Trace
from evaluators.trace.tool_expectations import answer_uses_tools, tool_expectations
from tests.support.evaluating import a_trace
from tests.support.table import for_each

ENTRIES: list[dict[str, Any]] = [
    {"match": {"task": "refund-1", "turn": 1}, "output": "8"},
    {"match": {"task": "refund-1"}, "regex": "^\\d+$"},
    {"match": {"input": "  What is it?\n"}, "output": "trimmed"},
    {"match": {"session_id": "s-2"}, "tools": [{"name": "calculator", "arguments": {"a": 5}}]},
]


def wanted(*tools: tuple[str, dict[str, Any] | None], **fields: Any) -> Expectation:
    every = tuple(ExpectedTool(name=name, arguments=arguments) for name, arguments in tools)
    return Expectation(tools=every, **fields)


@for_each(
    "where,expected",
    [
        ({"task_id": "refund-1", "turn": 1}, Expectation(output="8")),
        ({"task_id": "refund-1", "turn": 2}, Expectation(regex="^\\d+$")),
        ({"task_id": "refund-1"}, Expectation(regex="^\\d+$")),
        ({"input": "What is it? "}, Expectation(output="trimmed")),
        ({"input": "What is this?"}, None),
        ({"session_id": "s-2"}, wanted(("calculator", {"a": 5}))),
        ({}, None),
    ],
)
def test_the_first_entry_that_fits_wins(
    where: dict[str, Any], expected: Expectation | None
) -> None:
    fields = {"input": None, "turn": None, **where}
    turn = fields.pop("turn")

    assert Expectations(ENTRIES).find(a_trace(**fields), turn) == expected


@for_each(
    "entry,message",
    [
        ({"output": "8"}, "entry 1: Object missing required field `match`"),
        ({"match": {}, "output": "8"}, "entry 1: `match` is empty"),
        ({"match": {"turn": 0}}, "entry 1: Expected `int` >= 1"),
        ({"match": {"turn": 1}, "outputs": "8"}, "entry 1: Object contains unknown field"),
        ("text", "entry 1: Expected `object`, got `str`"),
    ],
)
def test_a_malformed_entry_is_named(entry: Any, message: str) -> None:
    with pytest.raises(ExpectationError, match=message):
        Expectations([entry])


def test_the_digest_changes_with_what_is_expected() -> None:
    assert len({Expectation(output=each).digest for each in ("8", "8", "9")}) == 2


def made(*tools: tuple[str, dict[str, Any]]) -> Trace:
    every = tuple(ToolCall(name=n, arguments=a, result=f"{n} says 4711") for n, a in tools)
    return a_trace(tool_calls=every, output="It is 4711.")


A_THEN_B = wanted(("a", {}), ("b", None))


@for_each(
    "trace,value,success,sequence",
    [
        (made(("a", {}), ("b", {"x": 1})), 1.0, True, 1.0),
        (made(("z", {}), ("a", {}), ("b", {})), 11 / 12, False, 1.0),  # none is out of its place
        (made(("b", {}), ("a", {})), 0.75, False, 0.0),
    ],
)
def test_tool_expectations(trace: Trace, value: float, success: bool, sequence: float) -> None:
    """The golden vectors have the formula."""
    score = tool_expectations(trace, expectation=A_THEN_B)
    lenient = tool_expectations(trace, expectation=A_THEN_B, tool_threshold=0.75)

    assert (score.value, score.success) == (pytest.approx(value), success)
    assert (score.metadata["sequence_correct"], lenient.success) == (sequence, True)
    assert tool_expectations(trace, expectation=Expectation(output="8")) == Score.not_applicable(
        "no tools are expected of this trace"
    )


@for_each(
    "question,result,answer,uses",
    [
        ("How much?", "total: 25.5", "It costs 25.5 dollars", True),
        ("Is 4711 there?", "4711", "4711 is fine", False),
        ("Who?", "Shipped by Hermes", "by hermes", True),
        ("Who?", "the cat sat", "the cat sat", False),
        ("Who?", None, "nobody known", False),
    ],
)
def test_an_answer_uses_a_result_when_it_repeats_something_telling(
    question: str, result: str | None, answer: str, uses: bool
) -> None:
    call = ToolCall(name="a", result=result)

    assert answer_uses_tools(a_trace(input=question, output=answer, tool_calls=(call,))) is uses
