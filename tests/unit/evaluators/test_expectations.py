"""The expectations file: the first entry whose match fits wins."""

from typing import Any

import pytest

from evaluators.errors import ExpectationError
from evaluators.expectations import Expectation, Expectations, ExpectedTool
from evaluators.model import Score, ToolCall
from evaluators.trace.tool_expectations import answer_uses_tools, tool_expectations
from tests.support.evaluating import a_trace

ENTRIES: list[dict[str, Any]] = [
    {"match": {"task": "refund-1", "turn": 1}, "output": "8"},
    {"match": {"task": "refund-1"}, "regex": "^\\d+$"},
    {"match": {"input": "  What is it?\n"}, "output": "trimmed"},
    {"match": {"session_id": "s-2"}, "tools": [{"name": "calculator", "arguments": {"a": 5}}]},
]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"task_id": "refund-1", "turn": 1}, Expectation(output="8")),
        ({"task_id": "refund-1", "turn": 2}, Expectation(regex="^\\d+$")),
        ({"task_id": "refund-1"}, Expectation(regex="^\\d+$")),
        ({"input": "What is it? "}, Expectation(output="trimmed")),
        ({"input": "What is this?"}, None),
        (
            {"session_id": "s-2"},
            Expectation(tools=(ExpectedTool(name="calculator", arguments={"a": 5}),)),
        ),
        ({}, None),
    ],
)
def test_the_first_entry_that_fits_wins(
    where: dict[str, Any], expected: Expectation | None
) -> None:
    fields = {"input": None, **where}
    turn = fields.pop("turn", None)

    found = Expectations(ENTRIES).find(a_trace(**fields), turn)

    assert found == expected


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"output": "8"}, "entry 1: Object missing required field `match`"),
        ({"match": {}, "output": "8"}, "entry 1: `match` is empty"),
        ({"match": {"turn": 0}}, "entry 1: Expected `int` >= 1"),
        (
            {"match": {"turn": 1}, "outputs": "8"},
            "entry 1: Object contains unknown field `outputs`",
        ),
        ("text", "entry 1: Expected `object`, got `str`"),
    ],
)
def test_a_malformed_entry_is_named(entry: Any, message: str) -> None:
    with pytest.raises(ExpectationError, match=message):
        Expectations([entry])


def test_the_digest_changes_with_what_is_expected() -> None:
    assert Expectation(output="8").digest == Expectation(output="8").digest
    assert Expectation(output="8").digest != Expectation(output="9").digest


def wanted(*tools: tuple[str, dict[str, Any] | None], **fields: Any) -> Expectation:
    every = tuple(ExpectedTool(name=name, arguments=arguments) for name, arguments in tools)
    return Expectation(tools=every, **fields)


def made(*tools: tuple[str, dict[str, Any]], **fields: Any) -> Any:
    every = tuple(ToolCall(name=n, arguments=a, result=f"{n} says 4711") for n, a in tools)
    return a_trace(tool_calls=every, output="It is 4711.", **fields)


class TestToolExpectations:
    def test_a_perfect_run(self) -> None:
        score = tool_expectations(
            made(("a", {"x": 1}), ("b", {})), expectation=wanted(("a", {"x": 1}), ("b", None))
        )

        assert (score.value, score.success) == (1.0, True)
        assert score.metadata["is_correct"] is True

    def test_one_call_too_many_puts_no_later_one_out_of_place(self) -> None:
        score = tool_expectations(
            made(("z", {}), ("a", {}), ("b", {})), expectation=wanted(("a", {}), ("b", {}))
        )

        assert score.metadata["sequence_correct"] == 1.0
        assert score.metadata["tool_selection_correct"] == pytest.approx(2 / 3)
        assert score.success is False

    def test_the_wrong_order_counts_only_where_order_matters(self) -> None:
        trace = made(("b", {}), ("a", {}))

        ordered = tool_expectations(trace, expectation=wanted(("a", {}), ("b", {})))
        free = tool_expectations(
            trace, expectation=wanted(("a", {}), ("b", {}), tool_order_matters=False)
        )

        assert ordered.metadata["sequence_correct"] == 0.0
        assert free.value == 1.0

    def test_success_is_at_the_tool_threshold(self) -> None:
        trace, expectation = made(("a", {"x": 1})), wanted(("a", {"x": 2}))

        strict = tool_expectations(trace, expectation=expectation)
        lenient = tool_expectations(trace, expectation=expectation, tool_threshold=0.75)

        assert (strict.value, strict.success, lenient.success) == (0.75, False, True)

    def test_without_expected_tools_there_is_nothing_to_judge(self) -> None:
        score = tool_expectations(made(("a", {})), expectation=Expectation(output="8"))

        assert score == Score.not_applicable("no tools are expected of this trace")


@pytest.mark.parametrize(
    ("question", "result", "answer", "uses"),
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
