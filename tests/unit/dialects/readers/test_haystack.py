"""Haystack's own tracing."""

from typing import Any

from evaluators.model import Trace
from tests.support.dialect_spans import NAME, trace_of, under
from tests.support.openai_messages import assert_whole
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, compact


def message(role: str, **content: Any) -> dict[str, Any]:
    return {"role": role, "meta": {}, "name": None, "content": [content]}


CALL = {"tool_name": "get_weather", "arguments": ARGUMENTS, "id": "c1"}
GENERATOR = "OpenAIChatGenerator"


def component(kind: str, given: Any, came: Any) -> dict[str, Any]:
    sides = {"input": compact(given), "output": compact(came)}
    return under("haystack.component.", type=kind, **sides)


def haystack(*, failed: bool = False, underscore: bool = False) -> Trace:
    returned = message("tool", tool_call_result={"result": RESULT, "origin": CALL, "error": failed})
    usage = {"prompt_tokens": 7, "completion_tokens": 2}
    answer = message("assistant", text=ANSWER) | {"meta": {"model": "gpt-4o", "usage": usage}}
    asked = message("user", text=QUESTION)
    if underscore:
        answer, asked = ({f"_{k}": v for k, v in m.items()} for m in (answer, asked))
    called = message("assistant", tool_call=CALL)
    sent = {"messages": [asked]}
    data = {"haystack.pipeline.input_data": compact({"agent": sent})}
    return trace_of(
        {NAME: "haystack.pipeline.run", **data},
        component(GENERATOR, sent, {"replies": [called]}),
        component("ToolInvoker", {}, {"tool_messages": [returned]}),
        component(GENERATOR, sent, {"replies": [answer]}),
    )


def test_haystack_2_components() -> None:
    trace = haystack()

    assert_whole(trace)
    assert (trace.tokens.input, trace.models) == (7, ("gpt-4o",))
    assert haystack(failed=True).tool_calls[0].error == RESULT


def test_haystack_before_2_13_names_its_fields_with_an_underscore() -> None:
    trace = haystack(underscore=True)

    assert (trace.input, trace.output, trace.tokens.output) == (QUESTION, ANSWER, 2)
