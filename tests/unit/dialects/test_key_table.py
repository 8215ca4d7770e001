"""Every row of the table behind docs/dialects.md is true: a span that says it nowhere else is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from evaluators.dialects.fields import Row
from evaluators.dialects.registry import DIALECTS
from evaluators.model import Trace
from tests.support.dialect_spans import SpanSpec, trace_of

WORD = "zanzibar"
MESSAGE = [{"role": "user", "content": WORD}]
ANSWER = [{"role": "assistant", "content": WORD}]
TOOL = {"type": "function", "function": {"name": WORD, "parameters": {"type": "object"}}}
OF: dict[str, dict[str, dict[str, Any]]] = {
    "genai": {
        "model call": {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai"},
        "tool": {"gen_ai.operation.name": "execute_tool"},
        "agent": {"gen_ai.operation.name": "invoke_agent"},
        "any": {"gen_ai.operation.name": "chat"},
    },
    "openinference": {
        "model call": {"openinference.span.kind": "LLM"},
        "tool": {"openinference.span.kind": "TOOL"},
        "agent": {"openinference.span.kind": "AGENT"},
    },
    "langfuse": {
        "model call": {"langfuse.observation.type": "generation"},
        "tool": {"langfuse.observation.type": "tool"},
        "agent": {"langfuse.observation.type": "agent"},
        "step": {"langfuse.observation.type": "span"},
    },
    "mlflow": {
        "model call": {"mlflow.spanType": '"CHAT_MODEL"'},
        "tool": {"mlflow.spanType": '"TOOL"'},
        "agent": {"mlflow.spanType": '"AGENT"'},
        "step": {"mlflow.spanType": '"CHAIN"'},
    },
    "vercel_ai": {
        "model call": {"ai.operationId": "ai.generateText.doGenerate"},
        "tool": {"ai.operationId": "ai.toolCall"},
        "agent": {"ai.operationId": "ai.generateText"},
        "step": {"ai.operationId": "ai.embed"},
    },
    "opencode": {
        "model call": {"ai.operationId": "ai.streamText.doStream"},
        "tool": {"ai.operationId": "ai.toolCall"},
        "agent": {"ai.operationId": "ai.streamText"},
        "step": {"ai.operationId": "ai.embed"},
    },
    "copilot": {"tool": {"gen_ai.operation.name": "execute_tool"}},
    "langsmith": {
        "model call": {"langsmith.span.kind": "llm"},
        "tool": {"langsmith.span.kind": "tool"},
        "agent": {"langsmith.span.kind": "agent"},
    },
    "mastra": {
        "model call": {"mastra.span.type": "model_generation"},
        "tool": {"mastra.span.type": "tool_call"},
        "agent": {"mastra.span.type": "agent_run"},
        "step": {"mastra.span.type": "model_step"},
    },
    "voltagent": {
        "model call": {"entity.type": "agent", "span.type": "llm"},
        "tool": {"entity.type": "agent", "span.type": "tool", "tool.name": "some_tool"},
        "agent": {"entity.type": "agent"},
    },
    "spring_ai": {
        "model call": {"gen_ai.operation.name": "chat"},
        "tool": {
            "spring.ai.kind": "tool_call",
            "gen_ai.operation.name": "framework",
            "spring.ai.tool.definition.name": "some_tool",
        },
        "agent": {"spring.ai.kind": "chat_client", "gen_ai.operation.name": "framework"},
    },
    "genkit": {
        "model call": {"genkit:type": "action", "genkit:metadata:subtype": "model"},
        "tool": {"genkit:type": "action", "genkit:metadata:subtype": "tool"},
        "agent": {"genkit:type": "action", "genkit:metadata:subtype": "flow"},
    },
    "google_adk": {
        "model call": {"gen_ai.operation.name": "generate_content"},
        "tool": {"gen_ai.operation.name": "execute_tool"},
    },
    "pydantic_ai": {
        "model call": {"gen_ai.operation.name": "chat"},
        "tool": {"gen_ai.operation.name": "execute_tool"},
        "agent": {"gen_ai.operation.name": "invoke_agent"},
    },
    "traceloop": {
        "model call": {"llm.request.type": "chat", "gen_ai.completion.0.role": "assistant"},
        "tool": {"traceloop.span.kind": "tool"},
        "agent": {"traceloop.span.kind": "workflow"},
    },
    "logfire": {"model call": {}, "tool": {}, "agent": {}},
    "litellm": {"model call": {"llm.openai.messages": "[]"}},
    "haystack": {
        "model call": {"haystack.component.type": "OpenAIChatGenerator"},
        "tool": {"haystack.tool.name": "some_tool"},
        "agent": {"haystack.component.type": "Agent"},
        "step": {"haystack.component.type": "PromptBuilder"},
    },
    "claude_code": {
        "model call": {"span.type": "llm_request"},
        "tool": {"span.type": "tool"},
        "agent": {"span.type": "interaction"},
    },
    "codex": {
        "model call": {"spanwise.log.event": "codex.sse_event"},
        "tool": {"spanwise.log.event": "codex.tool_result", "tool_name": "exec_command"},
        "agent": {"spanwise.log.event": "codex.user_prompt"},
        "any": {"spanwise.log.event": "codex.tool_result", "tool_name": "exec_command"},
    },
    "gemini_cli": {
        "model call": {"gen_ai.operation.name": "llm_call"},
        "tool": {"gen_ai.operation.name": "tool_call"},
        "agent": {"gen_ai.operation.name": "agent_call"},
    },
    "qwen_code": {
        "model call": {"gen_ai.operation.name": "chat"},
        "tool": {"gen_ai.operation.name": "execute_tool"},
        "agent": {"gen_ai.operation.name": "invoke_agent"},
    },
    "openlit": {
        "model call": {"gen_ai.operation.name": "chat", "gen_ai.tool.name": "some_tool"},
        "agent": {},
    },
    "genai_events": {
        "model call": {"gen_ai.operation.name": "chat"},
        "tool": {"gen_ai.operation.name": "execute_tool"},
    },
}
SCOPES = {
    "google_adk": "gcp.vertex.agent",
    "pydantic_ai": "pydantic-ai",
    "logfire": "logfire.openai_agents",
    "litellm": "litellm",
    "openlit": "openlit",
    "claude_code": "com.anthropic.claude_code.tracing",
    "codex": "codex_otel.log_only",
    "opencode": "opencode",
    "copilot": "github.copilot",
    "gemini_cli": "gemini-cli",
    "qwen_code": "qwen-code",
    "mastra": "@mastra/otel",
    "spring_ai": "org.springframework.boot",
    "voltagent": "@voltagent/core",
}
NAMES = {"model call": "Chat completion with", "tool": "Function: {name}", "agent": "Agent run"}
OF_PROVIDERS = ("request_data", "response_data")
USAGE = {"input_tokens": 7, "output_tokens": 7}
COUNTS = [7, *map(json.dumps, (USAGE, {"usage": USAGE}, {"usage_metadata": USAGE}))]
GENKIT = {"role": "user", "content": [{"text": WORD}]}
CHOICE = {"event.name": "gen_ai.choice", "message": ANSWER[0]}
CANDIDATES: dict[str, list[Any]] = {
    "input": [
        WORD,
        json.dumps({"messages": MESSAGE}),
        json.dumps({"prompt_builder": {"messages": MESSAGE}}),
        json.dumps(MESSAGE),
        json.dumps({"contents": [{"role": "user", "parts": [{"text": WORD}]}]}),
        json.dumps([{"event.name": "gen_ai.user.message", "role": "user", "content": WORD}]),
        json.dumps(MESSAGE[0]),
        json.dumps([{"description": WORD}]),
        f"('{WORD}',)",
        json.dumps({"messages": [GENKIT]}),
        json.dumps(["a system prompt", WORD]),
    ],
    "output": [
        WORD,
        json.dumps({"message": ANSWER[0]}),
        json.dumps({"replies": ANSWER}),
        json.dumps({"generator": {"replies": ANSWER}}),
        json.dumps({"output": [{"type": "message", **ANSWER[0]}]}),
        json.dumps(ANSWER),
        json.dumps({"content": {"role": "model", "parts": [{"text": WORD}]}}),
        json.dumps({"index": 0, "message": ANSWER[0]}),
        json.dumps([CHOICE]),
        json.dumps({"message": {**GENKIT, "role": "model"}}),
        json.dumps([WORD]),
    ],
    "system": [WORD],
    "tools offered": [
        json.dumps({"tools": [TOOL]}),
        json.dumps([TOOL]),
        json.dumps({"body": {"tools": [TOOL]}}),
        json.dumps(TOOL),
        [json.dumps({"type": "function", "name": WORD, "inputSchema": {}})],
        WORD,
        json.dumps({"type": "object", "properties": {WORD: {"type": "string"}}}),
        json.dumps({"function_tools": [{"name": WORD, "parameters_json_schema": {}}]}),
        json.dumps({"messages": [], "tools": [{"name": WORD, "inputSchema": {}}]}),
    ],
    "tool name": [WORD, json.dumps([{"id": "c1", "function": {"name": WORD}}])],
    "tool call id": [WORD],
    "arguments": [json.dumps({"place": WORD})],
    "result": [WORD],
    "cost": [0.25, json.dumps({"total": 0.25}), json.dumps({"total_cost": 0.25})],
    "model": [WORD],
    "agent": [WORD],
    "session": [WORD],
    "user": [WORD],
}


def rows() -> Iterator[Any]:
    for dialect in DIALECTS:
        for row in dialect.rows():
            for key in row.keys:
                name = f"{dialect.name}-{row.field}-{row.on}-{key}"
                yield pytest.param(dialect.name, row, key, id=name)


def read(trace: Trace, field: str) -> Any:
    call = trace.tool_calls[0] if trace.tool_calls else None
    model = trace.model_calls[0] if trace.model_calls else None
    found: dict[str, Any] = {
        "input": trace.input,
        "output": trace.output,
        "system": trace.system,
        "tools offered": [[tool.name, tool.parameters] for tool in trace.tools_offered],
        "tool name": call and call.name,
        "tool call id": call and call.id,
        "arguments": call and call.arguments,
        "result": call and call.result,
        "input tokens": trace.tokens.input,
        "output tokens": trace.tokens.output,
        "cached tokens": trace.tokens.cached,
        "reasoning tokens": trace.tokens.reasoning,
        "cost": trace.cost_usd,
        "model": model and model.model,
        "agent": trace.agent,
        "session": trace.session_id,
        "user": trace.user_id,
    }
    return found[field]


def made(dialect: str, row: Row, key: str, value: Any) -> SpanSpec:
    attributes = dict(OF[dialect][row.on])
    events: list[tuple[str, dict[str, Any]]] = []
    if key.startswith("event "):
        name, _, inner = key.removeprefix("event ").partition(": ")
        events.append((name, {inner: value}))
    else:
        attributes[key.replace(".N.", ".0.")] = value
    if ".N." in key and key.endswith("content"):
        role = "user" if row.field == "input" else "assistant"
        attributes[key.replace(".N.", ".0.").replace("content", "role")] = role
    if row.on == "tool" and row.field != "tool name":
        attributes.setdefault("gen_ai.tool.name", "some_tool")
    name = "some_tool" if row.on == "tool" else "step"
    scope = "logfire.openai" if key in OF_PROVIDERS else SCOPES.get(dialect, "")
    if dialect == "logfire":
        name = NAMES[row.on]
    return SpanSpec(id=1, name=name, attributes=attributes, events=events, scope=scope)


@pytest.mark.parametrize(("dialect", "row", "key"), list(rows()))
def test_the_key_is_read(dialect: str, row: Row, key: str) -> None:
    candidates = CANDIDATES.get(row.field, COUNTS)
    wanted = 7 if "tokens" in row.field else 0.25 if row.field == "cost" else WORD

    found = [read(trace_of(made(dialect, row, key, value)), row.field) for value in candidates]

    assert any(
        each == wanted or (wanted == WORD and each is not None and WORD in json.dumps(each))
        for each in found
        if not (row.field in {"input", "output"} and each and ("{" in each or "[" in each))
    ), found


def test_the_table_names_the_dialect_that_a_span_is_told_as() -> None:
    for dialect, kinds in OF.items():
        if dialect == "genai_events":
            continue
        for attributes in kinds.values():
            trace = trace_of(SpanSpec(id=1, attributes=attributes, scope=SCOPES.get(dialect, "")))
            assert trace.dialects == (dialect,)
