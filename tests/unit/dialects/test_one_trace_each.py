"""One hand-made trace per dialect: the question, the answer, the call, the tokens, wherever it keeps them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluators.model import Trace
from tests.support.dialect_spans import SpanSpec, span_id, trace_of

QUESTION = "Is it raining in Paris?"
ANSWER = "Yes, it rains."
ARGUMENTS = {"city": "Paris"}
RESULT = "rainy, 14 °C"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
OPENAI_TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}


def dump(value: Any) -> str:
    return json.dumps(value)


def openai_call(identifier: str = "c1") -> dict[str, Any]:
    function = {"name": "get_weather", "arguments": dump(ARGUMENTS)}
    return {"id": identifier, "type": "function", "function": function}


ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
HISTORY = [
    *ASKED,
    {"role": "assistant", "content": None, "tool_calls": [openai_call()]},
    {"role": "tool", "tool_call_id": "c1", "content": RESULT},
]


def flat(prefix: str, messages: list[dict[str, Any]], nest: str = "") -> dict[str, Any]:
    """Messages as flattened attribute keys: OpenLLMetry's, or with `nest` OpenInference's."""
    out: dict[str, Any] = {}
    for index, message in enumerate(messages):
        stem = f"{prefix}.{index}.{nest}"
        for key in ("role", "content", "tool_call_id"):
            if message.get(key) is not None:
                out[stem + key] = message[key]
        for number, call in enumerate(message.get("tool_calls", [])):
            inner = f"{stem}tool_calls.{number}." + ("tool_call." if nest else "")
            function = "function." if nest else ""
            out[f"{inner}id"] = call["id"]
            out[f"{inner}{function}name"] = call["function"]["name"]
            out[f"{inner}{function}arguments"] = call["function"]["arguments"]
    return out


def three(
    *,
    scope: str,
    root: dict[str, Any],
    first: dict[str, Any],
    tool: dict[str, Any],
    last: dict[str, Any],
    **names: str,
) -> Trace:
    """Root, model call, tool, model call."""
    return trace_of(
        SpanSpec(
            id=1,
            name=names.get("root_name", "helper"),
            attributes=root,
            start=0,
            end=90,
            scope=scope,
        ),
        SpanSpec(
            id=2,
            parent=1,
            name=names.get("llm_name", "chat"),
            attributes=first,
            start=10,
            end=20,
            scope=scope,
        ),
        SpanSpec(
            id=3,
            parent=1,
            name=names.get("tool_name", "get_weather"),
            attributes=tool,
            start=30,
            end=40,
            scope=scope,
        ),
        SpanSpec(
            id=4,
            parent=1,
            name=names.get("llm_name", "chat"),
            attributes=last,
            start=50,
            end=60,
            scope=scope,
        ),
    )


def usage(prefix: str, given: str, came: str) -> tuple[dict[str, int], dict[str, int]]:
    return {f"{prefix}{given}": 100, f"{prefix}{came}": 10}, {
        f"{prefix}{given}": 150,
        f"{prefix}{came}": 20,
    }


PARTS_CALL = {"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": ARGUMENTS}


def genai() -> Trace:
    one, two = usage("gen_ai.usage.", "input_tokens", "output_tokens")
    asked = [{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]
    common = {"gen_ai.operation.name": "chat", "gen_ai.response.model": "gpt-4o-mini"}
    common["gen_ai.tool.definitions"] = dump(
        [{"type": "function", "name": "get_weather", "parameters": SCHEMA}]
    )
    return three(
        scope="any",
        root={
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "helper",
            **{k: v * 2 for k, v in one.items()},
        },
        first={
            **common,
            **one,
            "gen_ai.system_instructions": dump([{"type": "text", "content": "Be brief."}]),
            "gen_ai.input.messages": dump(asked),
            "gen_ai.output.messages": dump([{"role": "assistant", "parts": [PARTS_CALL]}]),
        },
        tool={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.call.arguments": dump(ARGUMENTS),
            "gen_ai.tool.call.result": RESULT,
        },
        last={
            **common,
            **two,
            "gen_ai.output.messages": dump(
                [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}]
            ),
        },
    )


def openinference() -> Trace:
    one, two = usage("llm.token_count.", "prompt", "completion")
    common = {"openinference.span.kind": "LLM", "llm.tools.0.tool.json_schema": dump(OPENAI_TOOL)}
    call = {"role": "assistant", "tool_calls": [openai_call()]}
    return three(
        scope="openinference.instrumentation.agno",
        root={"openinference.span.kind": "AGENT", "agent.name": "helper"},
        first={
            **common,
            **one,
            **flat("llm.input_messages", ASKED, "message."),
            **flat("llm.output_messages", [call], "message."),
        },
        tool={
            "openinference.span.kind": "TOOL",
            "tool.name": "get_weather",
            "input.value": dump(ARGUMENTS),
            "output.value": RESULT,
        },
        last={
            **common,
            **two,
            **flat("llm.input_messages", HISTORY, "message."),
            **flat("llm.output_messages", [{"role": "assistant", "content": ANSWER}], "message."),
        },
    )


def openinference_unflattened() -> Trace:
    """An instrumentation that only records the request and the answer (instructor, portkey, older ones)."""
    one, two = usage("llm.token_count.", "prompt", "completion")
    request = {"model": "gpt-4o-mini", "messages": ASKED, "tools": [OPENAI_TOOL]}
    answer = {
        "choices": [
            {"message": {"role": "assistant", "content": None, "tool_calls": [openai_call()]}}
        ]
    }
    done = {"choices": [{"message": {"role": "assistant", "content": ANSWER}}]}
    kind = {"openinference.span.kind": "LLM"}
    return three(
        scope="openinference.instrumentation.portkey",
        root={"openinference.span.kind": "AGENT", "agent.name": "helper"},
        first={**kind, **one, "input.value": dump(request), "output.value": dump(answer)},
        tool={
            "openinference.span.kind": "TOOL",
            "tool.name": "get_weather",
            "tool.parameters": dump(ARGUMENTS),
            "output.value": dump(RESULT),
        },
        last={
            **kind,
            **two,
            "input.value": dump({"messages": HISTORY}),
            "output.value": dump(done),
        },
    )


def traceloop_flat() -> Trace:
    one, two = usage("gen_ai.usage.", "prompt_tokens", "completion_tokens")
    common = {
        "llm.request.type": "chat",
        "gen_ai.request.model": "gpt-4o-mini",
        "llm.request.functions.0.name": "get_weather",
        "llm.request.functions.0.parameters": dump(SCHEMA),
    }
    call = {"role": "assistant", "content": '""', "tool_calls": [openai_call()]}
    return three(
        scope="opentelemetry.instrumentation.crewai",
        root={"traceloop.span.kind": "workflow", "traceloop.entity.name": "helper"},
        first={
            **common,
            **one,
            **flat("gen_ai.prompt", ASKED),
            **flat("gen_ai.completion", [call]),
        },
        tool={
            "traceloop.span.kind": "tool",
            "traceloop.entity.name": "get_weather",
            "traceloop.entity.input": dump({"args": [], "kwargs": ARGUMENTS}),
            "traceloop.entity.output": dump(RESULT),
        },
        last={
            **common,
            **two,
            **flat("gen_ai.prompt", HISTORY),
            **flat("gen_ai.completion", [{"role": "assistant", "content": ANSWER}]),
        },
    )


def anthropic_blocks() -> Trace:
    """OpenLLMetry for Anthropic: content is a JSON list of blocks inside the flat key."""
    one, two = usage("gen_ai.usage.", "prompt_tokens", "completion_tokens")
    common = {"llm.request.type": "chat", "gen_ai.request.model": "claude-sonnet-4-5"}
    functions = {
        "llm.request.functions.0.name": "get_weather",
        "llm.request.functions.0.input_schema": dump(SCHEMA),
    }
    block = {"type": "tool_use", "id": "c1", "name": "get_weather", "input": ARGUMENTS}
    result = {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": [{"type": "text", "text": RESULT}],
    }
    history = [
        *ASKED,
        {"role": "assistant", "content": dump([block])},
        {"role": "user", "content": dump([result])},
    ]
    call = {"role": "assistant", "content": "", "tool_calls": [openai_call()]}
    return three(
        scope="opentelemetry.instrumentation.anthropic",
        root={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"},
        first={
            **common,
            **functions,
            **one,
            **flat("gen_ai.prompt", ASKED),
            **flat("gen_ai.completion", [call]),
        },
        tool={},
        last={
            **common,
            **two,
            **flat("gen_ai.prompt", history),
            **flat("gen_ai.completion", [{"role": "assistant", "content": ANSWER}]),
        },
    )


def langfuse() -> Trace:
    def generation(messages: Any, output: Any, given: int, came: int) -> dict[str, Any]:
        return {
            "langfuse.observation.type": "generation",
            "langfuse.observation.input": dump({"messages": messages, "tools": [OPENAI_TOOL]}),
            "langfuse.observation.output": dump(output),
            "langfuse.observation.usage_details": dump(
                {"input": given, "output": came, "total": given + came}
            ),
        }

    call = {"role": "assistant", "content": None, "tool_calls": [openai_call()]}
    return three(
        scope="langfuse-sdk",
        root={
            "langfuse.observation.type": "agent",
            "langfuse.observation.input": dump({"question": QUESTION}),
        },
        first=generation(ASKED, call, 100, 10),
        tool={
            "langfuse.observation.type": "tool",
            "langfuse.observation.input": dump(ARGUMENTS),
            "langfuse.observation.output": RESULT,
        },
        last=generation(HISTORY, {"role": "assistant", "content": ANSWER}, 150, 20),
    )


def mlflow() -> Trace:
    def call(messages: Any, message: Any, given: int, came: int) -> dict[str, Any]:
        return {
            "mlflow.spanType": dump("CHAT_MODEL"),
            "mlflow.spanInputs": dump({"messages": messages, "tools": [OPENAI_TOOL]}),
            "mlflow.spanOutputs": dump({"choices": [{"message": message}]}),
            "mlflow.chat.tokenUsage": dump({"input_tokens": given, "output_tokens": came}),
        }

    asked = {"role": "assistant", "content": None, "tool_calls": [openai_call()]}
    return three(
        scope="mlflow.tracing.provider",
        root={"mlflow.spanType": dump("AGENT"), "mlflow.spanInputs": dump({"question": QUESTION})},
        first=call(ASKED, asked, 100, 10),
        tool={
            "mlflow.spanType": dump("TOOL"),
            "mlflow.spanInputs": dump(ARGUMENTS),
            "mlflow.spanOutputs": dump(RESULT),
        },
        last=call(HISTORY, {"role": "assistant", "content": ANSWER}, 150, 20),
    )


def vercel_v4() -> Trace:
    one, two = usage("ai.usage.", "promptTokens", "completionTokens")
    tool = {"type": "function", "name": "get_weather", "parameters": SCHEMA}
    call = {
        "toolCallType": "function",
        "toolCallId": "c1",
        "toolName": "get_weather",
        "args": dump(ARGUMENTS),
    }
    return three(
        scope="ai",
        root={
            "ai.operationId": "ai.generateText",
            "ai.telemetry.functionId": "helper",
            "ai.prompt": dump({"system": "Be brief.", "prompt": QUESTION}),
            "ai.usage.promptTokens": 250,
        },
        first={
            "ai.operationId": "ai.generateText.doGenerate",
            "ai.prompt.messages": dump(ASKED),
            "ai.prompt.tools": [dump(tool)],
            "ai.response.toolCalls": dump([call]),
            **one,
        },
        tool={
            "ai.operationId": "ai.toolCall",
            "ai.toolCall.name": "get_weather",
            "ai.toolCall.id": "c1",
            "ai.toolCall.args": dump(ARGUMENTS),
            "ai.toolCall.result": dump(RESULT),
        },
        last={"ai.operationId": "ai.generateText.doGenerate", "ai.response.text": ANSWER, **two},
    )


def pydantic_ai_events() -> Trace:
    """pydantic-ai before its messages became attributes: `events` and `all_messages_events`."""
    one, two = usage("gen_ai.usage.", "input_tokens", "output_tokens")
    system = {"event.name": "gen_ai.system.message", "role": "system", "content": "Be brief."}
    user = {"event.name": "gen_ai.user.message", "role": "user", "content": QUESTION}
    asked = {"role": "assistant", "tool_calls": [openai_call()]}
    result = {
        "event.name": "gen_ai.tool.message",
        "role": "tool",
        "id": "c1",
        "name": "get_weather",
        "content": RESULT,
    }
    chosen = {"event.name": "gen_ai.choice", "index": 0, "message": asked}
    done = {
        "event.name": "gen_ai.choice",
        "index": 0,
        "message": {"role": "assistant", "content": ANSWER},
    }
    again = {"event.name": "gen_ai.assistant.message", **asked}
    parameters = {"function_tools": [{"name": "get_weather", "parameters_json_schema": SCHEMA}]}
    common = {"gen_ai.operation.name": "chat", "model_request_parameters": dump(parameters)}
    return three(
        scope="pydantic-ai",
        root_name="agent run",
        root={
            "agent_name": "helper",
            "final_result": ANSWER,
            "all_messages_events": dump([system, user, again, result]),
            "gen_ai.usage.input_tokens": 250,
        },
        first={**common, **one, "events": dump([system, user, chosen])},
        tool_name="running tool",
        tool={
            "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.call.id": "c1",
            "tool_arguments": dump(ARGUMENTS),
        },
        last={**common, **two, "events": dump([system, user, again, result, done])},
    )


def google_adk_gemini() -> Trace:
    """ADK 1.x: whole Gemini requests and responses."""
    declared = {"function_declarations": [{"name": "get_weather", "parameters": SCHEMA}]}
    asked = {"role": "user", "parts": [{"text": QUESTION}]}
    call = {"function_call": {"id": "c1", "name": "get_weather", "args": ARGUMENTS}}
    result = {
        "function_response": {"id": "c1", "name": "get_weather", "response": {"result": RESULT}}
    }

    def model(contents: Any, parts: Any, given: int, came: int) -> dict[str, Any]:
        config = {"system_instruction": "Be brief.", "tools": [declared]}
        counts = {"prompt_token_count": given, "candidates_token_count": came}
        answer = {"content": {"role": "model", "parts": parts}, "usage_metadata": counts}
        return {
            "gen_ai.request.model": "gemini-2.0-flash",
            "gcp.vertex.agent.llm_request": dump({"contents": contents, "config": config}),
            "gcp.vertex.agent.llm_response": dump(answer),
        }

    history = [asked, {"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]
    return three(
        scope="gcp.vertex.agent",
        root_name="agent_run [helper]",
        root={},
        llm_name="call_llm",
        first=model([asked], [call], 100, 10),
        tool_name="execute_tool get_weather",
        tool={
            "gcp.vertex.agent.tool_call_args": dump(ARGUMENTS),
            "gcp.vertex.agent.tool_response": dump({"result": RESULT}),
        },
        last=model(history, [{"text": ANSWER}], 150, 20),
    )


def langsmith() -> Trace:
    one, two = usage("gen_ai.usage.", "input_tokens", "output_tokens")
    call = {"name": "get_weather", "args": ARGUMENTS, "id": "c1", "type": "tool_call"}
    asking = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "AIMessage"],
    }

    def generations(kwargs: Any) -> str:
        return dump(
            {
                "generations": [
                    [{"text": "", "message": {**asking, "kwargs": {"type": "ai", **kwargs}}}]
                ]
            }
        )

    def human(text: str) -> dict[str, Any]:
        return {
            "lc": 1,
            "type": "constructor",
            "id": ["x", "HumanMessage"],
            "kwargs": {"content": text, "type": "human"},
        }

    given = dump(
        {
            "messages": [
                [
                    {
                        **human("Be brief."),
                        "id": ["x", "SystemMessage"],
                        "kwargs": {"content": "Be brief."},
                    },
                    human(QUESTION),
                ]
            ]
        }
    )
    kind = {"langsmith.span.kind": "llm", "tools": dump([OPENAI_TOOL])}
    return three(
        scope="langsmith",
        root={
            "langsmith.span.kind": "chain",
            "gen_ai.prompt": dump({"messages": [human(QUESTION)]}),
        },
        first={
            **kind,
            **one,
            "gen_ai.prompt": given,
            "gen_ai.completion": generations({"content": "", "tool_calls": [call]}),
        },
        tool={
            "langsmith.span.kind": "tool",
            "gen_ai.prompt": dump({"input": str(ARGUMENTS)}),
            "gen_ai.completion": dump(
                {"output": {"type": "tool", "content": RESULT, "tool_call_id": "c1"}}
            ),
        },
        last={**kind, **two, "gen_ai.completion": generations({"content": ANSWER})},
    )


def azure_events() -> Trace:
    """Content in span events as whole JSON (Azure AI inference, Semantic Kernel)."""
    one, two = usage("gen_ai.usage.", "input_tokens", "output_tokens")
    kind = {"gen_ai.operation.name": "chat", "gen_ai.system": "az.ai.inference"}
    call = dump({"message": {"tool_calls": [openai_call()]}, "finish_reason": "tool_calls"})
    done = dump({"message": {"content": ANSWER}, "finish_reason": "stop"})

    def event(name: str, content: Any) -> tuple[str, dict[str, Any]]:
        return name, {
            "gen_ai.event.content": content if isinstance(content, str) else dump(content)
        }

    asked = [
        event("gen_ai.system.message", {"role": "system", "content": "Be brief."}),
        event("gen_ai.user.message", {"role": "user", "content": QUESTION}),
    ]
    history = [
        *asked,
        event("gen_ai.tool.message", {"role": "tool", "id": "c1", "content": RESULT}),
    ]
    return trace_of(
        SpanSpec(
            id=1,
            attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"},
            end=90,
        ),
        SpanSpec(
            id=2,
            parent=1,
            attributes={**kind, **one},
            events=[*asked, event("gen_ai.choice", call)],
            start=1,
            end=2,
        ),
        SpanSpec(
            id=3,
            parent=1,
            attributes={
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "get_weather",
                "gen_ai.tool.call.id": "c1",
            },
            start=3,
            end=4,
        ),
        SpanSpec(
            id=4,
            parent=1,
            attributes={**kind, **two},
            events=[*history, event("gen_ai.choice", done)],
            start=5,
            end=6,
        ),
    )


def strands() -> Trace:
    one, two = usage("gen_ai.usage.", "input_tokens", "output_tokens")
    use = {"toolUse": {"toolUseId": "c1", "name": "get_weather", "input": ARGUMENTS}}
    back = {"toolResult": {"toolUseId": "c1", "status": "success", "content": [{"text": RESULT}]}}
    system = ("gen_ai.system.message", {"content": dump([{"text": "Be brief."}])})
    user = ("gen_ai.user.message", {"content": dump([{"text": QUESTION}])})
    scope = "strands.telemetry.tracer"
    chat = {"gen_ai.operation.name": "chat"}
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_weather",
        "gen_ai.tool.call.id": "c1",
    }
    tool_events = [
        ("gen_ai.tool.message", {"content": dump(ARGUMENTS), "id": "c1"}),
        ("gen_ai.choice", {"message": dump([{"text": RESULT}]), "id": "c1"}),
    ]
    root = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "helper",
        "gen_ai.usage.input_tokens": 250,
    }
    return trace_of(
        SpanSpec(id=1, attributes=root, end=90, scope=scope, events=[user, ("gen_ai.choice", {"message": ANSWER})]),
        SpanSpec(id=2, parent=1, attributes={**chat, **one}, scope=scope, start=1, end=2,
             events=[system, user, ("gen_ai.choice", {"message": dump([use])})]),
        SpanSpec(id=3, parent=1, attributes=tool, scope=scope, start=3, end=4, events=tool_events),
        SpanSpec(id=4, parent=1, attributes={**chat, **two}, scope=scope, start=5, end=6,
             events=[system, user, ("gen_ai.tool.message", {"content": dump([back])}),
                     ("gen_ai.choice", {"message": dump([{"text": ANSWER}])})]),
    )  # fmt: skip


ALL = (
    genai,
    openinference,
    openinference_unflattened,
    traceloop_flat,
    anthropic_blocks,
    langfuse,
    mlflow,
    vercel_v4,
    pydantic_ai_events,
    google_adk_gemini,
    langsmith,
    azure_events,
    strands,
)


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
def test_a_dialect_says_what_happened(make: Any) -> None:
    trace: Trace = make()

    assert trace.input == QUESTION
    assert trace.output == ANSWER
    assert trace.system == "Be brief."
    assert (trace.tokens.input, trace.tokens.output) == (250, 30)
    assert len(trace.model_calls) == 2
    assert trace.agents == ("helper",) or make is langsmith
    (call,) = trace.tool_calls
    assert (call.name, call.arguments, call.result, call.error) == (
        "get_weather",
        ARGUMENTS,
        RESULT,
        None,
    )
    assert call.id == "c1"
    assert call.span_id == span_id(3)


@pytest.mark.parametrize(
    "make",
    [m for m in ALL if m not in (azure_events, strands, langsmith)],
    ids=lambda make: make.__name__,
)
def test_a_dialect_says_which_tools_were_offered(make: Any) -> None:
    trace: Trace = make()

    (tool,) = trace.tools_offered
    assert (tool.name, tool.parameters) == ("get_weather", SCHEMA)
    assert "no_tool_definitions" not in trace.gaps
