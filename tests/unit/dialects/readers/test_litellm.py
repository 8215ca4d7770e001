"""LiteLLM's own spans, and those of the raw request."""

from typing import Any

from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.openai_messages import ASKED, CALL, TOLD, assert_whole
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, SAID, USER, dump, one_call


def litellm(call_type: str) -> dict[str, Any]:
    said = {"role": "assistant", "parts": [], "tool_calls": [CALL], "finish_reason": "tool_calls"}
    return {
        "gen_ai.request.model": "gpt-4o",
        "llm.request.type": call_type,
        "gen_ai.system": "openai",
        "gen_ai.response.id": "chatcmpl-1",
        "gen_ai.operation.name": "chat" if call_type == "completion" else call_type,
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 4,
        "gen_ai.cost.total_cost": 0.002,
        "llm.request.functions.0.name": "get_weather",
        "llm.request.functions.0.parameters": dump({"type": "object"}),
        "gen_ai.input.messages": dump(
            [{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]
        ),
        "gen_ai.output.messages": dump([said]),
        "gen_ai.completion.0.function_call.name": "get_weather",
        "gen_ai.completion.0.function_call.arguments": dump(ARGUMENTS),
        "metadata.user_api_key_hash": "x",
    }


def test_litellm_calls_of_every_type_are_model_calls_and_counted_once() -> None:
    for call_type in ("completion", "acompletion", "responses", "aresponses", "anthropic_messages"):
        trace = trace_of(
            {NAME: "Received Proxy Server Request", **litellm(call_type)},
            {NAME: "litellm_request", **litellm(call_type)},
            SpanSpec(id=3, parent=2, name="raw_gen_ai_request", attributes={"llm.openai.id": "x"}),
        )

        assert len(trace.model_calls) == 1, call_type
        assert (trace.tokens.input, trace.tokens.output) == (11, 4)
        assert trace.cost_usd == 0.002
        assert trace.input == QUESTION
        assert [tool.name for tool in trace.tools_offered] == ["get_weather"]
        call = one_call(trace)
        assert (call.name, call.id, call.arguments) == ("get_weather", "c1", ARGUMENTS)


def test_a_litellm_tool_answer_in_parts_is_its_text() -> None:
    history = [
        {"role": "user", "parts": [{"type": "text", "content": QUESTION}]},
        {"role": "assistant", "parts": [], "tool_calls": [CALL]},
        {"role": "tool", "parts": [{"type": "text", "content": RESULT}], "tool_call_id": "c1"},
    ]
    said = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}]
    trace = trace_of(
        {},
        litellm("acompletion"),
        {
            **litellm("acompletion"),
            "gen_ai.response.id": "chatcmpl-2",
            "gen_ai.input.messages": dump(history),
            "gen_ai.output.messages": dump(said),
        },
    )

    assert_whole(trace)


def test_litellms_raw_request_has_the_calls_that_its_own_span_loses() -> None:
    def pair(id_: int, messages: list[Any], said: dict[str, Any]) -> tuple[SpanSpec, SpanSpec]:
        outer = {
            "gen_ai.request.model": "gpt-4o",
            "gen_ai.response.id": f"r{id_}",
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": QUESTION,
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.usage.prompt_tokens": 7,
            "gen_ai.usage.completion_tokens": 2,
        }
        raw = {
            "llm.openai.messages": repr(messages),
            "llm.openai.choices": repr([{"index": 0, "message": said}]),
            "llm.openai.id": f"r{id_}",
        }
        return (
            SpanSpec(id=id_, parent=1, scope="litellm", start=id_, end=id_ + 1, attributes=outer),
            SpanSpec(
                id=id_ + 1, parent=id_, scope="litellm", start=id_, end=id_ + 1, attributes=raw
            ),
        )

    trace = trace_of({NAME: "turn"}, *pair(2, [USER], ASKED), *pair(4, [USER, ASKED, TOLD], SAID))

    assert_whole(trace)
    assert (trace.tokens.input, len(trace.model_calls)) == (14, 2)


def test_a_litellm_session_is_what_the_caller_gave_not_a_generated_id() -> None:
    def of(trace_id: str) -> str:
        span = SpanSpec(id=1, scope="litellm", attributes={"litellm.trace_id": trace_id})
        return trace_of(span).session_source

    assert of("chat-7") == "litellm.trace_id"
    assert of("0a4f04d4-6b5d-4d0f-9c55-0b2a5f4b6f0e") == "trace"


def test_what_litellm_hides_is_no_content() -> None:
    sent = [{"role": "user", "content": "redacted-by-litellm"}]
    said = [{"index": 0, "message": {"role": "assistant", "content": "redacted-by-litellm"}}]
    attributes = {
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "redacted-by-litellm",
        "llm.openai.messages": repr(sent),
        "llm.openai.choices": repr(said),
    }

    trace = trace_of(attributes, scope="litellm")

    assert (trace.input, trace.output) == (None, None)
    assert "no_content" in trace.gaps
