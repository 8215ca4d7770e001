"""LiteLLM's own spans, and those of the raw request."""

from typing import Any

from tests.support.conventions import asked
from tests.support.dialect_spans import NAME, SpanSpec, trace_of, under
from tests.support.openai_messages import ASKED, CALL, TOLD, assert_whole
from tests.support.table import for_each
from tests.support.weather import ARGUMENTS, QUESTION, SAID, USER, dump, one_call

TYPES = ("completion", "acompletion", "responses", "aresponses", "anthropic_messages")


def litellm(call_type: str, **more: Any) -> dict[str, Any]:
    said = {"role": "assistant", "parts": [], "tool_calls": [CALL], "finish_reason": "tool_calls"}
    own = {
        "request.model": "gpt-4o",
        "system": "openai",
        "response.id": "chatcmpl-1",
        "operation.name": "chat" if call_type == "completion" else call_type,
        "usage.input_tokens": 11,
        "usage.output_tokens": 4,
        "cost.total_cost": 0.002,
        "input.messages": asked(QUESTION),
        "output.messages": dump([said]),
        "completion.0.function_call.name": "get_weather",
        "completion.0.function_call.arguments": dump(ARGUMENTS),
    }
    return {
        **under("gen_ai.", **own | more),
        "llm.request.type": call_type,
        "llm.request.functions.0.name": "get_weather",
        "llm.request.functions.0.parameters": dump({"type": "object"}),
        "metadata.user_api_key_hash": "x",
    }


@for_each("call_type", TYPES)
def test_litellm_calls_of_every_type_are_model_calls_and_counted_once(call_type: str) -> None:
    trace = trace_of(
        {NAME: "Received Proxy Server Request", **litellm(call_type)},
        {NAME: "litellm_request", **litellm(call_type)},
        SpanSpec(parent=2, name="raw_gen_ai_request", attributes={"llm.openai.id": "x"}),
    )

    assert (trace.input, len(trace.model_calls)) == (QUESTION, 1)
    assert (trace.tokens.input, trace.tokens.output, trace.cost_usd) == (11, 4, 0.002)
    assert [tool.name for tool in trace.tools_offered] == ["get_weather"]
    call = one_call(trace)
    assert (call.name, call.id, call.arguments) == ("get_weather", "c1", ARGUMENTS)


def test_litellms_raw_request_has_the_calls_that_its_own_span_loses() -> None:
    def pair(number: int, messages: list[Any], said: dict[str, Any]) -> tuple[SpanSpec, SpanSpec]:
        outer = {
            "request.model": "gpt-4o",
            "response.id": f"r{number}",
            "prompt.0.role": "user",
            "prompt.0.content": QUESTION,
            "completion.0.role": "assistant",
            "usage.prompt_tokens": 7,
            "usage.completion_tokens": 2,
        }
        choices = repr([{"index": 0, "message": said}])
        raw = under("llm.openai.", id=f"r{number}", messages=repr(messages), choices=choices)
        when: dict[str, Any] = {"start": number, "end": number + 1}
        return (
            SpanSpec(attributes=under("gen_ai.", **outer), **when),
            SpanSpec(parent=number, attributes=raw, **when),
        )

    first, last = pair(2, [USER], ASKED), pair(4, [USER, ASKED, TOLD], SAID)
    trace = trace_of({NAME: "turn"}, *first, *last, scope="litellm")

    assert_whole(trace)
    assert (trace.tokens.input, len(trace.model_calls)) == (14, 2)


@for_each(
    "given,source",
    [("chat-7", "litellm.trace_id"), ("0a4f04d4-6b5d-4d0f-9c55-0b2a5f4b6f0e", "trace")],
)
def test_a_litellm_session_is_what_the_caller_gave_not_a_generated_id(
    given: str, source: str
) -> None:
    assert trace_of({"litellm.trace_id": given}, scope="litellm").session_source == source
