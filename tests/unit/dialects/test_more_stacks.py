"""Stacks that are in no recording here: spans as their own sources and documentation write them."""

from __future__ import annotations

import json
from typing import Any

from evaluators.model import ToolCall, Trace
from tests.support.dialect_spans import SpanSpec, trace_of

QUESTION = "Is it raining in Paris?"
ANSWER = "Yes, it rains."
ARGUMENTS = {"city": "Paris"}
RESULT = "rainy, 14 C"
CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": json.dumps(ARGUMENTS)},
}


def dump(value: Any) -> str:
    return json.dumps(value)


def one_call(trace: Trace) -> ToolCall:
    (call,) = trace.tool_calls
    return call


def assert_whole(trace: Trace, *, tool: str = "get_weather") -> None:
    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    call = one_call(trace)
    assert (call.name, call.arguments, call.result, call.error) == (tool, ARGUMENTS, RESULT, None)


# --- Mastra (mastra-ai/mastra, observability/otel-exporter/src/gen-ai-semantics.ts) ----------------------------------


def mastra(kind: str, **more: Any) -> dict[str, Any]:
    return {"mastra.span.type": kind, **more}


def test_mastra_agent_model_and_tool() -> None:
    parts_in = [{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]
    asked = {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": ARGUMENTS}],
    }
    said = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}]
    trace = trace_of(
        SpanSpec(
            id=1,
            name="invoke_agent weather-agent",
            scope="@mastra/otel-exporter",
            attributes={
                **mastra("agent_run"),
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "weather-agent",
                "gen_ai.conversation.id": "thread-7",
                "gen_ai.tool.definitions": dump(["get_weather"]),
                "gen_ai.system_instructions": "Be brief.",
                "mastra.agent_run.input": dump([{"role": "user", "content": QUESTION}]),
                "mastra.agent_run.output": dump({"text": ANSWER}),
            },
            end=9,
        ),
        SpanSpec(
            id=2,
            parent=1,
            name="chat gpt-4o",
            start=1,
            end=2,
            attributes={
                **mastra("model_generation"),
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "gpt-4o",
                "gen_ai.input.messages": dump(parts_in),
                "gen_ai.output.messages": dump([asked]),
                "gen_ai.usage.input_tokens": 10,
                "gen_ai.usage.output_tokens": 2,
            },
        ),
        SpanSpec(
            id=3,
            parent=2,
            name="model_step",
            start=1,
            end=2,
            attributes={**mastra("model_step"), "gen_ai.operation.name": "model_step"},
        ),
        SpanSpec(
            id=4,
            parent=1,
            name="execute_tool get_weather",
            start=3,
            end=4,
            attributes={
                **mastra("tool_call"),
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "get_weather",
                "gen_ai.tool.call.id": "c1",
                "gen_ai.tool.call.arguments": dump(ARGUMENTS),
                "gen_ai.tool.call.result": RESULT,
            },
        ),
        SpanSpec(
            id=5,
            parent=1,
            name="chat gpt-4o",
            start=5,
            end=6,
            attributes={
                **mastra("model_generation"),
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "gpt-4o",
                "gen_ai.input.messages": dump(parts_in),
                "gen_ai.output.messages": dump(said),
                "gen_ai.usage.input_tokens": 20,
                "gen_ai.usage.output_tokens": 3,
            },
        ),
    )

    assert_whole(trace)
    assert (trace.agent, trace.session_id, trace.system) == (
        "weather-agent",
        "thread-7",
        "Be brief.",
    )
    assert [tool.name for tool in trace.tools_offered] == ["get_weather"]
    assert (trace.tokens.input, trace.tokens.output) == (30, 5)


def test_a_mastra_run_whose_model_calls_are_not_exported_still_has_question_and_answer() -> None:
    trace = trace_of(
        SpanSpec(
            id=1,
            attributes={
                **mastra("agent_run"),
                "gen_ai.operation.name": "invoke_agent",
                "mastra.agent_run.input": dump([{"role": "user", "content": QUESTION}]),
                "mastra.agent_run.output": dump({"text": ANSWER}),
            },
        )
    )

    assert (trace.input, trace.output) == (QUESTION, ANSWER)


def test_a_mastra_error_is_read_from_its_attribute_where_the_status_has_no_words() -> None:
    tool = SpanSpec(
        id=2,
        parent=1,
        status=2,
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get_weather",
            "error.type": "TOOL_EXECUTION_FAILED",
            "error.message": "no such city",
        },
    )

    assert one_call(trace_of(SpanSpec(id=1), tool)).error == "no such city"


# --- litellm (litellm/integrations/opentelemetry.py) -----------------------------------------------------------------


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
            SpanSpec(
                id=1, name="Received Proxy Server Request", attributes=litellm(call_type), end=9
            ),
            SpanSpec(
                id=2,
                parent=1,
                name="litellm_request",
                attributes=litellm(call_type),
                start=1,
                end=8,
            ),
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
        SpanSpec(id=1, end=9),
        SpanSpec(id=2, parent=1, attributes=litellm("acompletion"), start=1, end=2),
        SpanSpec(
            id=3,
            parent=1,
            start=3,
            end=4,
            attributes={
                **litellm("acompletion"),
                "gen_ai.response.id": "chatcmpl-2",
                "gen_ai.input.messages": dump(history),
                "gen_ai.output.messages": dump(said),
            },
        ),
    )

    assert_whole(trace)


# --- Semantic Kernel (python/semantic_kernel/utils/telemetry, connectors/ai/function_call_*) -------------------------


KERNEL = "semantic_kernel.utils.telemetry.model_diagnostics.decorators"
KERNEL_CALL: dict[str, Any] = {
    **CALL,
    "function": {"name": "WeatherPlugin-get_weather", "arguments": json.dumps(ARGUMENTS)},
}


def kernel_call(id_: int, prompt: list[Any], said: Any, *, start: int) -> SpanSpec:
    return SpanSpec(
        id=id_,
        parent=1,
        name="chat.completions gpt-4o",
        scope=KERNEL,
        start=start,
        end=start + 1,
        attributes={
            "gen_ai.operation.name": "chat.completions",
            "gen_ai.system": "openai",
            "gen_ai.request.model": "gpt-4o",
            "gen_ai.response.id": f"r{id_}",
            "gen_ai.response.prompt_tokens": 5,
            "gen_ai.usage.input_tokens": 5,
            "gen_ai.usage.output_tokens": 1,
        },
        events=[
            ("gen_ai.content.prompt", {"gen_ai.prompt": dump(prompt)}),
            ("gen_ai.content.completion", {"gen_ai.completion": dump(said)}),
        ],
    )


def test_semantic_kernel_functions_lose_their_plugins_name() -> None:
    asked = {"role": "user", "content": QUESTION}
    called = {"role": "assistant", "tool_calls": [KERNEL_CALL]}
    answered = {"role": "tool", "tool_call_id": "c1", "content": RESULT}
    trace = trace_of(
        SpanSpec(
            id=1, name="AutoFunctionInvocationLoop", scope="semantic_kernel.connectors.ai", end=9
        ),
        kernel_call(2, [asked], [{"message": called, "finish_reason": "tool_calls"}], start=1),
        SpanSpec(
            id=3,
            parent=1,
            name="execute_tool WeatherPlugin-get_weather",
            scope="semantic_kernel.functions.kernel_function",
            start=3,
            end=4,
            attributes={
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "WeatherPlugin-get_weather",
                "gen_ai.tool.call.id": "c1",
            },
        ),
        kernel_call(
            4,
            [asked, called, answered],
            [{"message": {"role": "assistant", "content": ANSWER}}],
            start=5,
        ),
    )

    assert_whole(trace)
    assert one_call(trace).span_id is not None
    assert trace.tokens.input == 10


def test_dotnet_kernel_names_with_an_underscore_lose_a_plugins_name_too() -> None:
    tool = SpanSpec(
        id=2,
        parent=1,
        scope="Microsoft.SemanticKernel",
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "WeatherPlugin_get_weather",
        },
    )

    assert one_call(trace_of(SpanSpec(id=1), tool)).name == "get_weather"


def test_a_dash_in_another_frameworks_tool_is_part_of_its_name() -> None:
    tool = SpanSpec(
        id=2,
        parent=1,
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "SearchPlugin-look-up",
        },
    )

    assert one_call(trace_of(SpanSpec(id=1), tool)).name == "SearchPlugin-look-up"


# --- Azure AI agents (azure-ai-agents, telemetry/_ai_agents_instrumentor.py) -----------------------------------------


def event(name: str, **content: Any) -> tuple[str, dict[str, Any]]:
    return f"gen_ai.{name}.message", {
        "gen_ai.system": "az.ai.agents",
        "gen_ai.thread.id": "thread_1",
        "gen_ai.event.content": dump(content),
    }


def test_an_azure_thread_run_is_read_from_its_events() -> None:
    run = {
        "gen_ai.system": "az.ai.agents",
        "gen_ai.operation.name": "process_thread_run",
        "gen_ai.thread.id": "thread_1",
        "gen_ai.agent.id": "asst_1",
        "gen_ai.response.model": "gpt-4o",
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 6,
    }
    trace = trace_of(
        SpanSpec(id=1, name="my agent", end=9),
        SpanSpec(
            id=2,
            parent=1,
            name="process_thread_run",
            scope="azure.ai.agents",
            start=1,
            end=8,
            attributes=run,
            events=[
                event("user", content=QUESTION, role="user"),
                event("assistant", tool_calls=[CALL], role="assistant"),
                event("tool", content=RESULT, id="c1"),
                event("assistant", content={"text": {"value": ANSWER}}, role="assistant"),
            ],
        ),
    )

    assert_whole(trace)
    assert (trace.session_id, trace.tokens.input) == ("thread_1", 12)


# --- MCP (semantic conventions for MCP; traceloop's opentelemetry-instrumentation-mcp) -------------------------------


def test_an_mcp_call_seen_by_client_and_server_is_one_call() -> None:
    said = {
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "get_weather",
        "mcp.session.id": "m1",
        "jsonrpc.request.id": "7",
    }
    content = dump({"content": [{"type": "text", "text": RESULT}], "isError": False})
    trace = trace_of(
        SpanSpec(id=1, name="agent", end=9),
        SpanSpec(
            id=2,
            parent=1,
            name="execute_tool get_weather",
            start=1,
            end=8,
            attributes={
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "get_weather",
                "gen_ai.tool.call.id": "c1",
                "gen_ai.tool.call.arguments": dump(ARGUMENTS),
                "gen_ai.tool.call.result": RESULT,
            },
        ),
        SpanSpec(id=3, parent=2, name="tools/call get_weather", start=2, end=7, attributes=said),
        SpanSpec(
            id=4,
            parent=3,
            name="tools/call get_weather",
            start=3,
            end=6,
            attributes={**said, "gen_ai.tool.call.result": content},
        ),
        SpanSpec(id=5, parent=1, name="tools/list", attributes={"mcp.method.name": "tools/list"}),
    )

    call = one_call(trace)
    assert (call.name, call.id, call.arguments, call.result) == (
        "get_weather",
        "c1",
        ARGUMENTS,
        RESULT,
    )


def test_an_mcp_result_loses_its_envelope_and_says_when_it_failed() -> None:
    for failed in (False, True):
        result = dump({"content": [{"type": "text", "text": RESULT}], "isError": failed})
        tool = SpanSpec(
            id=2,
            parent=1,
            name="tools/call get_weather",
            attributes={
                "mcp.method.name": "tools/call",
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "get_weather",
                "gen_ai.tool.call.arguments": dump(ARGUMENTS),
                "gen_ai.tool.call.result": result,
            },
        )

        call = one_call(trace_of(SpanSpec(id=1), tool))

        assert (call.result, call.error) == (RESULT, RESULT if failed else None)


def test_a_traceloop_mcp_call_is_its_arguments_and_its_text() -> None:
    for failed in (False, True):
        output = {"result": RESULT, **({"is_error": True} if failed else {})}
        attributes = {
            "traceloop.span.kind": "tool",
            "traceloop.entity.name": "get_weather",
            "traceloop.entity.input": dump({"tool_name": "get_weather", "arguments": ARGUMENTS}),
            "traceloop.entity.output": dump(output),
        }
        trace = trace_of(
            SpanSpec(id=1, name="agent", end=9),
            SpanSpec(
                id=2, parent=1, name="get_weather.tool", attributes=attributes, start=1, end=5
            ),
            SpanSpec(
                id=3, parent=2, name="get_weather.tool", attributes=attributes, start=2, end=4
            ),
        )

        call = one_call(trace)
        assert (call.name, call.arguments, call.result) == ("get_weather", ARGUMENTS, RESULT)
        assert call.error == (RESULT if failed else None)


# --- agno and beeai under OpenInference ------------------------------------------------------------------------------


def test_an_agno_agent_has_the_nodes_name_not_its_random_id() -> None:
    trace = trace_of(
        SpanSpec(
            id=1,
            name="Weather_Agent.run",
            end=9,
            attributes={
                "openinference.span.kind": "AGENT",
                "graph.node.id": "4f1c0de51a7b99aa",
                "graph.node.name": "Weather Agent",
                "session.id": "s-1",
                "input.value": QUESTION,
                "output.value": ANSWER,
            },
        ),
        SpanSpec(
            id=2,
            parent=1,
            name="get_weather",
            start=1,
            end=2,
            attributes={
                "openinference.span.kind": "TOOL",
                "tool.name": "get_weather",
                "tool.description": "The weather.",
                "tool.parameters": dump(ARGUMENTS),
                "input.value": dump(ARGUMENTS),
                "output.value": RESULT,
            },
        ),
    )

    assert_whole(trace)
    assert (trace.agent, trace.session_id) == ("Weather Agent", "s-1")


def test_a_beeai_tool_has_its_own_arguments() -> None:
    tool = SpanSpec(
        id=2,
        parent=1,
        name="get_weather",
        attributes={
            "openinference.span.kind": "TOOL",
            "tool.name": "get_weather",
            "tool.description": "The weather.",
            "tool.json_schema": dump({"type": "object", "properties": {"city": {}}}),
            "input.value": dump({"input": ARGUMENTS, "options": None}),
            "output.value": RESULT,
        },
    )

    trace = trace_of(SpanSpec(id=1), tool)

    call = one_call(trace)
    assert (call.arguments, call.result) == (ARGUMENTS, RESULT)
    (offered,) = trace.tools_offered
    assert offered.parameters == {"type": "object", "properties": {"city": {}}}


# --- LlamaIndex and Haystack -----------------------------------------------------------------------------------------


def test_a_llama_index_agent_under_openinference() -> None:
    trace = trace_of(
        SpanSpec(
            id=1,
            name="FunctionAgent.run",
            end=9,
            attributes={
                "openinference.span.kind": "AGENT",
                "input.value": dump({"user_msg": QUESTION}),
                "output.value": ANSWER,
            },
        ),
        SpanSpec(
            id=2,
            parent=1,
            name="FunctionTool.acall",
            start=1,
            end=2,
            attributes={
                "openinference.span.kind": "TOOL",
                "tool.name": "get_weather",
                "tool.description": "get_weather(city: str)",
                "tool.parameters": dump({"properties": {"city": {"type": "string"}}}),
                "input.value": dump({"kwargs": ARGUMENTS}),
                "output.value": RESULT,
            },
        ),
    )

    assert_whole(trace)
    assert trace.agent == "FunctionAgent"


def test_a_llama_index_tool_says_its_name_and_result_in_its_output() -> None:
    output: dict[str, Any] = {
        "blocks": [{"block_type": "text", "text": RESULT}],
        "tool_name": "get_weather",
        "raw_input": {"args": [], "kwargs": ARGUMENTS},
        "raw_output": RESULT,
        "is_error": False,
    }
    traceloop = {
        "traceloop.span.kind": "tool",
        "traceloop.entity.name": "FunctionTool",
        "traceloop.entity.input": dump({"kwargs": ARGUMENTS}),
        "traceloop.entity.output": dump(output),
    }
    openinference = {
        "openinference.span.kind": "TOOL",
        "tool.name": "get_weather",
        "input.value": dump({"kwargs": ARGUMENTS}),
        "output.value": dump(output),
    }
    for attributes in (traceloop, openinference):
        tool = SpanSpec(id=2, parent=1, name="FunctionTool.tool", attributes=attributes)

        call = one_call(trace_of(SpanSpec(id=1), tool))

        assert (call.name, call.arguments, call.result) == ("get_weather", ARGUMENTS, RESULT)


def test_a_haystack_pipeline_under_openinference() -> None:
    said = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-4o"}
    messages = "llm.input_messages"
    trace = trace_of(
        SpanSpec(
            id=1,
            name="Pipeline.run",
            end=9,
            attributes={
                "openinference.span.kind": "CHAIN",
                "input.value": dump({"data": {"llm": {"messages": "..."}}, "include": None}),
                "output.value": dump({"llm": {"replies": ["ChatMessage(...)"]}}),
            },
        ),
        SpanSpec(
            id=2,
            parent=1,
            name="OpenAIChatGenerator.run",
            start=1,
            end=2,
            attributes={
                **said,
                f"{messages}.0.message.role": "user",
                f"{messages}.0.message.content": QUESTION,
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.content": ANSWER,
                "llm.token_count.prompt": 3,
                "llm.token_count.completion": 4,
            },
        ),
    )

    assert (trace.tokens.input, trace.tokens.output) == (3, 4)
    assert trace.model_calls[0].output == ANSWER


# --- Vercel AI SDK 4, Langfuse 2 and 3, LangSmith, older google-adk --------------------------------------------------


def test_vercel_version_4_names() -> None:
    call = {"toolCallType": "function", "toolCallId": "c1", "toolName": "get_weather"}
    usage = {"ai.usage.promptTokens": 7, "ai.usage.completionTokens": 2}
    ask = dump([{"role": "user", "content": [{"type": "text", "text": QUESTION}]}])
    trace = trace_of(
        SpanSpec(
            id=1,
            name="ai.generateText",
            end=9,
            attributes={
                "ai.operationId": "ai.generateText",
                "ai.telemetry.functionId": "weather-agent",
                "ai.telemetry.metadata.sessionId": "s-1",
                "ai.prompt": dump({"prompt": QUESTION}),
                "ai.response.text": ANSWER,
                "ai.usage.promptTokens": 14,
                "ai.usage.completionTokens": 4,
            },
        ),
        SpanSpec(
            id=2,
            parent=1,
            start=1,
            end=2,
            attributes={
                "ai.operationId": "ai.generateText.doGenerate",
                "ai.prompt.format": "prompt",
                "ai.prompt.messages": ask,
                "ai.prompt.tools": [
                    dump({"type": "function", "name": "get_weather", "parameters": {}})
                ],
                "ai.response.toolCalls": dump([{**call, "args": dump(ARGUMENTS)}]),
                **usage,
            },
        ),
        SpanSpec(
            id=3,
            parent=1,
            start=3,
            end=4,
            attributes={
                "ai.operationId": "ai.toolCall",
                "ai.toolCall.name": "get_weather",
                "ai.toolCall.id": "c1",
                "ai.toolCall.args": dump(ARGUMENTS),
                "ai.toolCall.result": dump(RESULT),
            },
        ),
        SpanSpec(
            id=4,
            parent=1,
            start=5,
            end=6,
            attributes={
                "ai.operationId": "ai.generateText.doGenerate",
                "ai.prompt.messages": ask,
                "ai.response.text": ANSWER,
                **usage,
            },
        ),
    )

    assert_whole(trace)
    assert (trace.agent, trace.session_id) == ("weather-agent", "s-1")
    assert (trace.tokens.input, trace.tokens.output) == (14, 4)


def test_langfuse_3_with_inputs_on_the_trace_and_a_tool_observation() -> None:
    trace = trace_of(
        SpanSpec(
            id=1,
            name="agent",
            scope="langfuse-sdk",
            end=9,
            attributes={
                "langfuse.observation.type": "span",
                "langfuse.trace.name": "agent",
                "langfuse.trace.input": dump({"question": QUESTION}),
                "langfuse.trace.output": dump({"answer": ANSWER}),
                "session.id": "s-1",
                "user.id": "u-1",
            },
        ),
        SpanSpec(
            id=2,
            parent=1,
            name="get_weather",
            scope="langfuse-sdk",
            start=1,
            end=2,
            attributes={
                "langfuse.observation.type": "tool",
                "langfuse.observation.input": dump({"args": [], "kwargs": ARGUMENTS}),
                "langfuse.observation.output": RESULT,
            },
        ),
    )

    assert_whole(trace)
    assert (trace.session_id, trace.user_id) == ("s-1", "u-1")


def test_langsmith_exports_its_runs() -> None:
    trace = trace_of(
        SpanSpec(
            id=1,
            name="AgentExecutor",
            scope="langsmith",
            end=9,
            attributes={
                "langsmith.span.kind": "chain",
                "langsmith.trace.name": "AgentExecutor",
                "langsmith.metadata.session_id": "s-1",
                "gen_ai.prompt": dump({"input": QUESTION}),
                "gen_ai.completion": dump({"output": ANSWER}),
            },
        ),
        SpanSpec(
            id=2,
            parent=1,
            name="get_weather",
            start=1,
            end=2,
            attributes={
                "langsmith.span.kind": "tool",
                "gen_ai.prompt": dump({"input": "{'city': 'Paris'}"}),
                "gen_ai.completion": dump({"output": RESULT}),
            },
        ),
    )

    assert_whole(trace)
    assert trace.session_id == "s-1"


ADK = "gcp.vertex.agent"


def test_older_google_adk_keeps_everything_under_its_own_keys() -> None:
    request = {"model": "gemini", "contents": [{"role": "user", "parts": [{"text": QUESTION}]}]}
    asked = {
        "content": {
            "role": "model",
            "parts": [{"function_call": {"name": "get_weather", "args": ARGUMENTS}}],
        }
    }
    said = {"content": {"role": "model", "parts": [{"text": ANSWER}]}}
    call = {f"{ADK}.session_id": "s-1", f"{ADK}.invocation_id": "e-1", "gen_ai.system": ADK}
    trace = trace_of(
        SpanSpec(id=1, name="invocation", scope=ADK, end=9),
        SpanSpec(id=2, parent=1, name="agent_run [weather_agent]", scope=ADK, end=9),
        SpanSpec(
            id=3,
            parent=2,
            name="call_llm",
            scope=ADK,
            start=1,
            end=2,
            attributes={
                **call,
                f"{ADK}.llm_request": dump(request),
                f"{ADK}.llm_response": dump(asked),
            },
        ),
        SpanSpec(
            id=4,
            parent=2,
            name="execute_tool get_weather",
            scope=ADK,
            start=3,
            end=4,
            attributes={
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "get_weather",
                "gen_ai.tool.call.id": "<not specified>",
                f"{ADK}.llm_request": "{}",
                f"{ADK}.llm_response": "{}",
                f"{ADK}.tool_call_args": dump(ARGUMENTS),
                f"{ADK}.tool_response": dump({"result": RESULT}),
            },
        ),
        SpanSpec(
            id=5,
            parent=2,
            name="call_llm",
            scope=ADK,
            start=5,
            end=6,
            attributes={
                **call,
                f"{ADK}.llm_request": dump(request),
                f"{ADK}.llm_response": dump(said),
            },
        ),
    )

    assert_whole(trace)
    assert (trace.agent, trace.session_id) == ("weather_agent", "s-1")
    assert one_call(trace).id is None


def test_two_older_adk_calls_without_an_id_are_two_calls_and_emptied_ones_say_nothing() -> None:
    def tool(id_: int) -> SpanSpec:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.call.id": "<not specified>",
            f"{ADK}.tool_call_args": "{}",
            f"{ADK}.tool_response": "{}",
        }
        return SpanSpec(id=id_, parent=1, scope=ADK, start=id_, attributes=attributes)

    trace = trace_of(SpanSpec(id=1), tool(2), tool(3))

    assert [(c.id, c.arguments, c.result) for c in trace.tool_calls] == [(None, None, None)] * 2


# --- Bedrock AgentCore (strands or LangChain under ADOT) -------------------------------------------------------------


def test_agent_core_spans_carry_their_session_as_an_attribute() -> None:
    trace = trace_of(
        SpanSpec(
            id=1,
            name="invoke_agent Weather",
            scope="strands.telemetry.tracer",
            attributes={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "Weather",
                "session.id": "s-1",
                "aws.local.service": "weather.DEFAULT",
                "gen_ai.usage.input_tokens": 4,
            },
            events=[
                ("gen_ai.user.message", {"content": dump([{"text": QUESTION}])}),
                ("gen_ai.choice", {"message": ANSWER, "finish_reason": "end_turn"}),
            ],
        )
    )

    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    assert (trace.session_id, trace.agent, trace.tokens.input) == ("s-1", "Weather", 4)


# --- Anthropic's input tokens ----------------------------------------------------------------------------------------


def anthropic(**usage: int) -> Trace:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        **{f"gen_ai.usage.{key.replace('__', '.')}": count for key, count in usage.items()},
    }
    return trace_of(SpanSpec(id=1, attributes=attributes))


def test_anthropics_input_is_what_its_api_says_however_the_instrumentation_counts() -> None:
    inclusive = anthropic(input_tokens=132, cache_read__input_tokens=8, cache_write__input_tokens=4)
    exclusive = anthropic(input_tokens=12, cache_read__input_tokens=8_000)
    silent = anthropic(input_tokens=132)

    assert inclusive.tokens.input == 120
    assert exclusive.tokens.input == 12
    assert silent.tokens.input == 132
