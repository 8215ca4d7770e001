"""What each dialect's reader takes from where: the table behind docs/dialects.md. A test holds every row true.

Where a reader declares its keys, the row is that declaration; the others name them here. `N` stands for an index.
Every dialect is completed from the GenAI conventions, so the rows of `genai` hold for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from evaluators.dialects.content import usage
from evaluators.dialects.content.sessions import ONLY_OF, SESSION, USER
from evaluators.dialects.readers import vercel_ai, voltagent
from evaluators.dialects.readers.genai import _ARGUMENTS, _DEFINITIONS, _INPUT, _OUTPUT, _RESULT

Field = Literal[
    "input",
    "output",
    "system",
    "tools offered",
    "tool name",
    "tool call id",
    "arguments",
    "result",
    "input tokens",
    "output tokens",
    "cached tokens",
    "reasoning tokens",
    "cost",
    "model",
    "agent",
    "session",
    "user",
]
Kind = Literal["model call", "tool", "agent", "any"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """One field of the normalised trace, on which spans it is looked for, and under which keys, best first."""

    field: Field
    on: Kind
    keys: tuple[str, ...]


def _row(field: Field, on: Kind, *keys: str) -> Reads:
    return Reads(field=field, on=on, keys=keys)


def _tokens(table: usage.TokenKeys) -> tuple[Reads, ...]:
    keys = table.by_kind
    return (
        _row("input tokens", "model call", *keys["input"]),
        _row("output tokens", "model call", *keys["output"]),
        _row("cached tokens", "model call", *keys["cached"]),
        _row("reasoning tokens", "model call", *keys["reasoning"]),
    )


READS: Mapping[str, tuple[Reads, ...]] = {
    "genai": (
        _row("input", "model call", *_INPUT, "gen_ai.prompt.N.content"),
        _row(
            "output", "model call", *_OUTPUT, "gen_ai.completion.N.content", "gen_ai.response.text"
        ),
        _row("system", "model call", "gen_ai.system_instructions"),
        _row("tools offered", "model call", *_DEFINITIONS),
        _row("tool name", "tool", "gen_ai.tool.name"),
        _row("tool call id", "tool", "gen_ai.tool.call.id", "tool_call.id"),
        _row("arguments", "tool", *_ARGUMENTS, "code.function.parameters.N.value"),
        _row("result", "tool", *_RESULT, "code.function.return.value"),
        *_tokens(usage.GENAI),
        _row("cost", "model call", *usage.COSTS),
        _row("model", "model call", "gen_ai.response.model", "gen_ai.request.model"),
        _row("agent", "agent", "gen_ai.agent.name"),
        _row("session", "any", *(key for key in SESSION if key not in ONLY_OF)),
        _row("user", "any", *USER),
    ),
    "openinference": (
        _row("input", "model call", "llm.input_messages.N.message.content", "input.value"),
        _row("output", "model call", "llm.output_messages.N.message.content", "output.value"),
        _row("tools offered", "model call", "llm.tools.N.tool.json_schema"),
        _row("tools offered", "tool", "tool.json_schema", "tool.parameters"),
        _row("tools offered", "agent", "smolagents.tools_names"),
        _row("tool name", "tool", "tool.name", "tool_call.function.name"),
        _row("tool call id", "tool", "tool_call.id", "tool.id"),
        _row("arguments", "tool", "tool_call.function.arguments", "input.value", "tool.parameters"),
        _row("result", "tool", "output.value"),
        *_tokens(usage.OPENINFERENCE),
        _row("cost", "model call", "llm.cost.total"),
        _row("model", "model call", "llm.model_name"),
        _row("agent", "agent", "agent.name", "graph.node.name", "graph.node.id"),
    ),
    "langfuse": (
        _row("input", "model call", "langfuse.observation.input"),
        _row("output", "model call", "langfuse.observation.output"),
        _row("arguments", "tool", "langfuse.observation.input"),
        _row("result", "tool", "langfuse.observation.output"),
        _row("tool call id", "tool", "langfuse.observation.metadata.tool_call_id"),
        _row("input tokens", "model call", "langfuse.observation.usage_details"),
        _row("cost", "model call", "langfuse.observation.cost_details"),
        _row(
            "model", "model call", "langfuse.observation.model.name", "langfuse.observation.model"
        ),
    ),
    "mlflow": (
        _row("input", "model call", "mlflow.spanInputs"),
        _row("output", "model call", "mlflow.spanOutputs"),
        _row("tools offered", "model call", "mlflow.chat.tools"),
        _row("tool name", "tool", "mlflow.spanFunctionName"),
        _row("arguments", "tool", "mlflow.spanInputs"),
        _row("result", "tool", "mlflow.spanOutputs"),
        _row("input tokens", "model call", "mlflow.chat.tokenUsage"),
        _row("cost", "model call", "mlflow.llm.cost"),
        _row("model", "model call", "mlflow.llm.model", "model"),
    ),
    "vercel_ai": (
        _row("input", "model call", "ai.prompt.messages", "ai.prompt"),
        _row("output", "model call", "ai.response.text", "ai.response.object", "ai.result.text"),
        _row("tools offered", "model call", "ai.prompt.tools", "llm.request.functions.N.name"),
        _row("tool name", "tool", "ai.toolCall.name"),
        _row("tool call id", "tool", "ai.toolCall.id"),
        _row("arguments", "tool", *vercel_ai.ARGUMENTS),
        _row("result", "tool", *vercel_ai.RESULT),
        *_tokens(usage.VERCEL),
        _row("model", "model call", "ai.response.model", "ai.model.id"),
        _row("agent", "agent", "ai.telemetry.functionId"),
    ),
    "langsmith": (
        _row("input", "model call", "gen_ai.prompt"),
        _row("output", "model call", "gen_ai.completion"),
        _row("arguments", "tool", "gen_ai.prompt"),
        _row("result", "tool", "gen_ai.completion"),
        _row("agent", "agent", "langsmith.trace.name"),
    ),
    "mastra": (
        _row("input", "model call", "input"),
        _row("output", "model call", "output"),
        _row("arguments", "tool", "input"),
        _row("result", "tool", "output"),
        _row("tool name", "tool", "gen_ai.tool.name"),
        _row("agent", "agent", "gen_ai.agent.name", "gen_ai.agent.id", "workflow.id"),
        _row("input tokens", "model call", "gen_ai.usage.input_tokens"),
        _row("output tokens", "model call", "gen_ai.usage.output_tokens"),
        _row("model", "model call", "gen_ai.request.model"),
    ),
    "voltagent": (
        _row("input", "model call", "llm.messages"),
        _row("input", "agent", "input"),
        _row("output", "agent", "output"),
        _row("system", "agent", "agent.instructions"),
        _row("tools offered", "model call", "llm.tools"),
        _row("tool name", "tool", "tool.name"),
        _row("tool call id", "tool", "tool.call.id"),
        _row("arguments", "tool", "input"),
        _row("result", "tool", "output"),
        _row("input tokens", "agent", *voltagent.TOKENS.by_kind["input"]),
        _row("output tokens", "agent", *voltagent.TOKENS.by_kind["output"]),
        _row("model", "model call", "llm.model"),
        _row("agent", "agent", "entity.name"),
    ),
    "spring_ai": (
        _row("input", "model call", "gen_ai.prompt"),
        _row("output", "model call", "gen_ai.completion"),
        _row("tools offered", "model call", "spring.ai.model.request.tool.names"),
        _row("input", "agent", "gen_ai.prompt", "spring.ai.chat.client.user.text"),
        _row("output", "agent", "gen_ai.completion"),
        _row("tools offered", "agent", "spring.ai.chat.client.tool.names"),
        _row("tool name", "tool", "spring.ai.tool.definition.name"),
        _row("tool call id", "tool", "spring.ai.tool.call.id"),
        _row("arguments", "tool", "spring.ai.tool.call.arguments"),
        _row("result", "tool", "spring.ai.tool.call.result"),
        _row("tools offered", "tool", "spring.ai.tool.definition.schema"),
    ),
    "genkit": (
        _row("input", "model call", "genkit:input"),
        _row("output", "model call", "genkit:output"),
        _row("input", "agent", "genkit:input"),
        _row("output", "agent", "genkit:output"),
        _row("tools offered", "model call", "genkit:input"),
        _row("tool name", "tool", "genkit:name"),
        _row("arguments", "tool", "genkit:input"),
        _row("result", "tool", "genkit:output"),
        _row("input tokens", "model call", "genkit:output"),
        _row("model", "model call", "genkit:name"),
        _row("agent", "agent", "genkit:name"),
    ),
    "google_adk": (
        _row("input", "model call", "gcp.vertex.agent.llm_request"),
        _row("output", "model call", "gcp.vertex.agent.llm_response"),
        _row("arguments", "tool", "gcp.vertex.agent.tool_call_args"),
        _row("result", "tool", "gcp.vertex.agent.tool_response"),
    ),
    "pydantic_ai": (
        _row("input", "agent", "pydantic_ai.all_messages", "all_messages_events", "all_messages"),
        _row("output", "agent", "final_result", "pydantic_ai.all_messages", "all_messages_events"),
        _row("input", "model call", "events"),
        _row("tools offered", "model call", "model_request_parameters"),
        _row("arguments", "tool", "tool_arguments"),
        _row("result", "tool", "tool_response"),
        _row("agent", "agent", "gen_ai.agent.name", "agent_name"),
        _row("input tokens", "agent", *usage.AGGREGATE.by_kind["input"]),
        _row("output tokens", "agent", *usage.AGGREGATE.by_kind["output"]),
    ),
    "traceloop": (
        _row("input", "agent", "traceloop.entity.input", "crewai.crew.tasks"),
        _row("output", "agent", "traceloop.entity.output"),
        _row("tool name", "tool", "tool.name", "traceloop.entity.name"),
        _row("arguments", "tool", "tool.arguments", "traceloop.entity.input"),
        _row("result", "tool", "traceloop.entity.output"),
        _row("agent", "agent", "traceloop.entity.name"),
        _row("tools offered", "model call", "llm.request.functions.N.name"),
        _row("tools offered", "agent", "crewai.agent.tools"),
    ),
    "openlit": (
        _row("input", "agent", "function.kwargs", "function.args"),
        _row("tool name", "model call", "gen_ai.response.tool_calls", "gen_ai.tool.name"),
        _row("tool call id", "model call", "gen_ai.tool.call.id"),
        _row("arguments", "model call", "gen_ai.tool.args", "gen_ai.tool.call.arguments"),
    ),
    "logfire": (
        _row("input", "model call", "request_data", "raw_input", "input", "events"),
        _row("output", "model call", "response_data", "response", "output", "events"),
        _row("tools offered", "model call", "request_data", "response"),
        _row("tools offered", "agent", "tools"),
        _row("tool name", "tool", "name"),
        _row("arguments", "tool", "input"),
        _row("result", "tool", "output"),
        _row("agent", "agent", "name"),
        _row("session", "agent", "group_id"),
    ),
    "litellm": (
        _row("input", "model call", "llm.openai.messages"),
        _row("output", "model call", "llm.openai.choices"),
        _row("tools offered", "model call", "llm.openai.tools"),
        _row("model", "model call", "llm.openai.model"),
        _row("input tokens", "model call", "llm.openai.usage"),
    ),
    "haystack": (
        _row("input", "model call", "haystack.component.input"),
        _row("output", "model call", "haystack.component.output"),
        _row("tools offered", "model call", "haystack.component.input"),
        _row("input", "agent", "haystack.component.input"),
        _row("output", "agent", "haystack.component.output"),
        _row("agent", "agent", "haystack.component.name"),
        _row("tool name", "tool", "haystack.tool.name"),
        _row("arguments", "tool", "haystack.agent.step.tool.input"),
        _row("result", "tool", "haystack.agent.step.tool.output"),
    ),
    "claude_code": (
        _row("input", "agent", "user_prompt"),
        _row("tool name", "tool", "gen_ai.tool.name", "tool_name"),
        _row("tool call id", "tool", "gen_ai.tool.call.id", "tool_use_id"),
        _row("result", "tool", "event tool.output: output"),
        _row("input tokens", "model call", "input_tokens"),
        _row("output tokens", "model call", "output_tokens"),
        _row("cached tokens", "model call", "cache_read_tokens"),
        _row("model", "model call", "model", "gen_ai.request.model"),
    ),
    "genai_events": (
        _row(
            "input",
            "model call",
            "event gen_ai.user.message: content",
            "event gen_ai.user.message: gen_ai.event.content",
            "event gen_ai.content.prompt: gen_ai.prompt",
            "event gen_ai.client.inference.operation.details: gen_ai.input.messages",
        ),
        _row(
            "output",
            "model call",
            "event gen_ai.choice: message",
            "event gen_ai.choice: gen_ai.event.content",
            "event gen_ai.content.completion: gen_ai.completion",
            "event gen_ai.client.inference.operation.details: gen_ai.output.messages",
        ),
        _row("arguments", "tool", "event gen_ai.tool.message: content"),
        _row("result", "tool", "event gen_ai.choice: message"),
    ),
}
"""By dialect. The thin ones (autogen, anthropic_sdk, agent_framework, semantic_kernel) read as `genai`."""
