"""Haystack's own tracing."""

from typing import Any

from evaluators.model import Trace
from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.openai_messages import assert_whole
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, compact


def block(**content: Any) -> dict[str, Any]:
    return {"meta": {}, "name": None, "content": [content]}


HAYSTACK_CALL = {"tool_name": "get_weather", "arguments": ARGUMENTS, "id": "c1"}


HAYSTACK_USER = {"role": "user", **block(text=QUESTION)}


HAYSTACK_ASKED = {"role": "assistant", **block(tool_call=HAYSTACK_CALL)}


def component(id_: int, kind: str, given: Any, came: Any) -> SpanSpec:
    attributes = {
        "haystack.component.type": kind,
        "haystack.component.input": compact(given),
        "haystack.component.output": compact(came),
    }
    return SpanSpec(id=id_, parent=1, start=id_, end=id_ + 1, attributes=attributes)


def haystack(*, failed: bool, underscore: bool = False) -> Trace:
    returned = block(tool_call_result={"result": RESULT, "origin": HAYSTACK_CALL, "error": failed})
    answer = {
        "role": "assistant",
        **block(text=ANSWER),
        "meta": {"model": "gpt-4o", "usage": {"prompt_tokens": 7, "completion_tokens": 2}},
    }
    asked = HAYSTACK_USER
    if underscore:
        answer, asked = ({f"_{k}": v for k, v in m.items()} for m in (answer, asked))
    return trace_of(
        {
            NAME: "haystack.pipeline.run",
            "haystack.pipeline.input_data": compact({"agent": {"messages": [asked]}}),
        },
        component(2, "OpenAIChatGenerator", {"messages": [asked]}, {"replies": [HAYSTACK_ASKED]}),
        component(3, "ToolInvoker", {}, {"tool_messages": [{"role": "tool", **returned}]}),
        component(4, "OpenAIChatGenerator", {"messages": [asked]}, {"replies": [answer]}),
    )


def test_haystack_2_components() -> None:
    trace = haystack(failed=False)

    assert_whole(trace)
    assert (trace.tokens.input, trace.models) == (7, ("gpt-4o",))
    assert haystack(failed=True).tool_calls[0].error == RESULT


def test_haystack_before_2_13_names_its_fields_with_an_underscore() -> None:
    trace = haystack(failed=False, underscore=True)

    assert (trace.input, trace.output, trace.tokens.output) == (QUESTION, ANSWER, 2)
