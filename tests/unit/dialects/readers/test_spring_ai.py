"""Spring AI."""

from typing import Any

from evaluators.model import Trace
from tests.support.conventions import CHAT
from tests.support.dialect_spans import NAME, trace_of, under
from tests.support.table import for_each
from tests.support.weather import (
    one_call,
)


def model(given: int, came: int) -> dict[str, Any]:
    usage = {"gen_ai.usage.input_tokens": str(given), "gen_ai.usage.output_tokens": str(came)}
    return {NAME: "chat", **CHAT, **usage}


def called(name: str = "tool_call get_weather", result: str = '"rain"') -> dict[str, Any]:
    own = under("spring.ai.", kind="tool_call", tool__definition__name="get_weather")
    return {NAME: name, **own, "spring.ai.tool.call.result": result}


def in_loop(*steps: dict[str, Any]) -> Trace:
    return trace_of({NAME: "call"}, *steps)


SECOND = called("execute_tool get_weather")


@for_each(
    "steps,counts",
    [
        # in the first version the calls of one loop count on
        (
            [model(148, 13), called(), model(372, 26), called(), model(667, 43)],
            [(148, 13), (224, 13), (295, 17)],
        ),
        # in the second they do not
        ([model(148, 13), SECOND, model(372, 26)], [(148, 13), (372, 26)]),
        # a call that no tool came before begins again
        (
            [model(100, 5), called(), model(300, 9), model(400, 20)],
            [(100, 5), (200, 4), (400, 20)],
        ),
    ],
)
def test_model_calls_of_one_loop_count_on_in_the_first_version(
    steps: list[dict[str, Any]], counts: list[tuple[int, int]]
) -> None:
    trace = in_loop(*steps)

    found = [(call.tokens.input, call.tokens.output) for call in trace.model_calls]
    assert found == counts
    sums = [sum(each) for each in zip(*counts, strict=True)]
    assert [trace.tokens.input, trace.tokens.output] == sums


@for_each(
    "result,failed",
    [('"rain"', False), ('{"a": 1}', False), ("12", False), ("backend timed out", True)],
)
def test_a_result_that_is_no_json_is_the_message_of_what_was_raised(
    result: str, failed: bool
) -> None:
    assert (one_call(in_loop(called(result=result))).error is not None) is failed
