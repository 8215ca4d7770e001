"""What an instrumentation must be told so that its spans carry what is missing, beside the readers of those spans.

Every name was read in the instrumentation's own documentation or source, named in `source`; none is guessed. Where
nothing can be set, the advice says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

Lack = Literal[
    "no_content",
    "content_in_logs",
    "no_tool_arguments",
    "no_tool_definitions",
    "no_session",
    "scrubbed",
    "no_tokens",
    "no_root",
    "truncated",
    "dropped_attributes",
]
"""What spans can lack. `content_in_logs`: it came as log records; `scrubbed`: logfire replaced the session id."""
LACKS: tuple[Lack, ...] = get_args(Lack)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One setting, in the agent's process, that mends some lacks of one instrumentation."""

    speakers: tuple[str, ...]
    """Prefixes of instrumentation scopes, or names of dialects; empty = any."""
    lacks: tuple[Lack, ...]
    setting: str
    """Exactly what to set, as one would type it."""
    note: str = ""
    source: str

    def fits(self, scopes: Iterable[str], dialects: Iterable[str]) -> bool:
        """Whether one of these scopes or dialects is spoken to."""
        said = [*scopes, *dialects]
        return not self.speakers or any(each.startswith(self.speakers) for each in said)


_CONTENT: tuple[Lack, ...] = ("no_content", "no_tool_arguments")
_ALL_CONTENT: tuple[Lack, ...] = ("no_content", "content_in_logs", "no_tool_arguments")
_OPT_IN = "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental"
_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_OI = ("openinference", "@arizeai/openinference")
_OFFICIAL = (
    "opentelemetry.instrumentation.openai_v2",
    "opentelemetry.instrumentation.google_genai",
    "opentelemetry.instrumentation.vertexai",
    "opentelemetry.instrumentation.genai.",
    "opentelemetry.util.genai",
)
_TRACELOOP = (
    "traceloop",
    "opentelemetry.instrumentation.langchain",
    "opentelemetry.instrumentation.openai.",
    "opentelemetry.instrumentation.openai_agents",
    "opentelemetry.instrumentation.anthropic",
    "opentelemetry.instrumentation.bedrock",
    "opentelemetry.instrumentation.cohere",
    "opentelemetry.instrumentation.crewai",
    "opentelemetry.instrumentation.google_generativeai",
    "opentelemetry.instrumentation.groq",
    "opentelemetry.instrumentation.haystack",
    "opentelemetry.instrumentation.llamaindex",
    "opentelemetry.instrumentation.mcp",
    "opentelemetry.instrumentation.mistralai",
    "opentelemetry.instrumentation.ollama",
    "opentelemetry.instrumentation.agno",
)

ADVICE: tuple[Advice, ...] = (
    Advice(
        speakers=_OFFICIAL,
        lacks=_ALL_CONTENT,
        setting=f"{_OPT_IN} {_CAPTURE}=span_and_event",
        note="content then stands in the spans; by default it is left out, or sent as log records only",
        source="opentelemetry-python-contrib.readthedocs.io, instrumentation-genai/openai",
    ),
    Advice(
        speakers=("gcp.vertex.agent", "google_adk"),
        lacks=_CONTENT,
        setting=f"{_OPT_IN} {_CAPTURE}=SPAN_AND_EVENT",
        note="google-adk 2.x exports no content without both",
        source="README of the package opentelemetry-util-genai",
    ),
    Advice(
        speakers=("gcp.vertex.agent", "google_adk"),
        lacks=_CONTENT,
        setting="ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true",
        note="google-adk 1.x; true is its default, so something sets it to false",
        source="google/adk-python, src/google/adk/telemetry/tracing.py",
    ),
    Advice(
        speakers=_TRACELOOP,
        lacks=_ALL_CONTENT,
        setting="TRACELOOP_TRACE_CONTENT=true",
        note="true is its default, so something sets it to false",
        source="traceloop.com/docs/openllmetry/privacy",
    ),
    Advice(
        speakers=_OI,
        lacks=_CONTENT,
        setting="unset OPENINFERENCE_HIDE_INPUTS OPENINFERENCE_HIDE_OUTPUTS OPENINFERENCE_HIDE_INPUT_MESSAGES"
        " OPENINFERENCE_HIDE_OUTPUT_MESSAGES",
        note="or TraceConfig(hide_inputs=False, hide_outputs=False); nothing is hidden by default",
        source="arize-ai.github.io/openinference/spec/configuration/trace-config",
    ),
    Advice(
        speakers=_OI,
        lacks=("no_tool_definitions",),
        setting="unset OPENINFERENCE_HIDE_LLM_TOOLS OPENINFERENCE_HIDE_INPUTS",
        note="tools are hidden with the inputs; some instrumentations never export them",
        source="arize-ai.github.io/openinference/spec/configuration/trace-config",
    ),
    Advice(
        speakers=_OI,
        lacks=("no_session",),
        setting='with using_attributes(session_id="..."):',
        note="from openinference.instrumentation, around each turn; the openai-agents group_id is not exported",
        source="README of the package openinference-instrumentation",
    ),
    Advice(
        speakers=("pydantic-ai", "pydantic_ai"),
        lacks=_CONTENT,
        setting="Agent.instrument_all(InstrumentationSettings(include_content=True))",
        note="true is its default, so something sets it to false",
        source="ai.pydantic.dev/api/models/instrumented",
    ),
    Advice(
        speakers=("logfire",),
        lacks=("scrubbed",),
        setting="logfire.configure(scrubbing=False)",
        note="or scrubbing=logfire.ScrubbingOptions(callback=...) that returns match.value for session ids",
        source="logfire.pydantic.dev/docs/how-to-guides/scrubbing",
    ),
    Advice(
        speakers=("vercel_ai",),
        lacks=_CONTENT,
        setting="experimental_telemetry: {isEnabled: true, recordInputs: true, recordOutputs: true}",
        note="both are recorded by default, so something turns them off",
        source="ai-sdk.dev/docs/ai-sdk-core/telemetry",
    ),
    Advice(
        speakers=("vercel_ai",),
        lacks=("no_session",),
        setting='experimental_telemetry: {isEnabled: true, functionId: "<agent>", metadata: {sessionId: "..."}}',
        source="ai-sdk.dev/docs/ai-sdk-core/telemetry",
    ),
    Advice(
        speakers=("gen_ai",),
        lacks=("no_session",),
        setting="telemetry: {includeRuntimeContext: {sessionId: true}}, runtimeContext: {sessionId}",
        note="AI SDK 7; and registerTelemetry(new OpenTelemetry({runtimeContext: true}))",
        source="source of the package @ai-sdk/otel, src/supplemental-attributes.ts",
    ),
    Advice(
        speakers=("@mastra/", "mastra"),
        lacks=("no_session",),
        setting='agent.generate(..., {tracingOptions: {metadata: {sessionId: "..."}}})',
        source="source of the package @mastra/otel-exporter",
    ),
    Advice(
        speakers=("genkit",),
        lacks=("no_session",),
        setting='setCustomMetadataAttributes({sessionId: "..."})',
        note="from genkit/tracing, first thing in each flow",
        source="source of the package @genkit-ai/core, tracing",
    ),
    Advice(
        speakers=("@sentry/",),
        lacks=_CONTENT,
        setting="Sentry.openAIIntegration({recordInputs: true, recordOutputs: true})",
        note="also of the other integrations; or sendDefaultPii: true for all",
        source="recordings of @sentry/node 10.78.0",
    ),
    Advice(
        speakers=("spring_ai",),
        lacks=_CONTENT,
        setting="spring.ai.tools.observations.include-content=true",
        note="arguments and results of tool calls",
        source="source of Spring AI, ToolCallingAutoConfiguration and its tests",
    ),
    Advice(
        speakers=("langfuse",),
        lacks=("no_session",),
        setting='with propagate_attributes(session_id="..."):',
        note="from langfuse, around each turn (JS: propagateAttributes({sessionId}, ...))",
        source="langfuse.com/docs/sessions",
    ),
    Advice(
        speakers=("langfuse",),
        lacks=_CONTENT,
        setting="LANGFUSE_OBSERVE_DECORATOR_IO_CAPTURE_ENABLED=true",
        note="or capture_input=True, capture_output=True of @observe",
        source="langfuse.com/docs/sdk/python/decorators",
    ),
    Advice(
        speakers=("agent_framework",),
        lacks=_CONTENT,
        setting="ENABLE_SENSITIVE_DATA=true",
        source="learn.microsoft.com/agent-framework/agents/observability",
    ),
    Advice(
        speakers=("semantic_kernel", "Microsoft.SemanticKernel"),
        lacks=_CONTENT,
        setting="SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true",
        note="set before semantic_kernel is imported",
        source="microsoft/semantic-kernel, model_diagnostics/model_diagnostics_settings.py",
    ),
    Advice(
        speakers=("azure.ai",),
        lacks=_CONTENT,
        setting="AZURE_TRACING_GEN_AI_CONTENT_RECORDING_ENABLED=true",
        source="azuresdkdocs, azure.ai.projects.telemetry.agents",
    ),
    Advice(
        speakers=("autogen",),
        lacks=_CONTENT,
        setting="OpenAIInstrumentor().instrument()",
        note="of opentelemetry-instrumentation-openai: autogen's own spans never hold messages or arguments",
        source="captures of autogen-agentchat 0.7.5 beside opentelemetry-instrumentation-openai 0.62.4",
    ),
    Advice(
        speakers=("haystack",),
        lacks=_CONTENT,
        setting="HAYSTACK_CONTENT_TRACING_ENABLED=true",
        note="set before haystack is imported",
        source="haystack/tracing/tracer.py of the package haystack-ai",
    ),
    Advice(
        speakers=("com.anthropic.claude_code", "claude_code"),
        lacks=_CONTENT,
        setting="OTEL_LOG_USER_PROMPTS=1 OTEL_LOG_TOOL_DETAILS=1 OTEL_LOG_TOOL_CONTENT=1",
        note="questions and tool results; answers and the arguments of MCP tools are never exported",
        source="recordings of claude-agent-sdk 0.2.184",
    ),
    Advice(
        speakers=("strands",),
        lacks=("no_tool_definitions",),
        setting="OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental,gen_ai_tool_definitions",
        source="strands-agents/sdk-python, pull request 1113",
    ),
    Advice(
        speakers=("strands",),
        lacks=("no_session",),
        setting='Agent(trace_attributes={"session.id": "..."})',
        source="strandsagents.com/docs/user-guide/observability-evaluation/traces",
    ),
    Advice(
        speakers=_TRACELOOP,
        lacks=("no_session",),
        setting='Traceloop.set_association_properties({"session_id": "..."})',
        source="traceloop.com/docs/openllmetry/tracing/association",
    ),
    Advice(
        speakers=("openlit",),
        lacks=_CONTENT,
        setting="openlit.init(capture_message_content=True)",
        note="true is its default, so something sets it to false",
        source="openlit 1.45.0, openlit/__init__.py",
    ),
    Advice(
        speakers=("openlit",),
        lacks=("no_session",),
        setting='with openlit.using_attributes({"session.id": "..."}):',
        note="around each turn; since openlit 1.40",
        source="openlit 1.45.0, openlit/__init__.py",
    ),
    Advice(
        speakers=("mlflow",),
        lacks=("no_session",),
        setting='span.set_attribute("session.id", "...")',
        note="on the root span: mlflow.trace.session is trace metadata, which is not exported over OTLP",
        source="mlflow.org/docs/latest/genai/tracing/track-users-sessions; captures of mlflow 3.17.2",
    ),
    Advice(
        speakers=(),
        lacks=("no_session",),
        setting='span.set_attribute("session.id", "...")',
        note="on the root span; or name your own attribute in Spanwise's attributes.session",
        source="opentelemetry.io/docs/specs/semconv/general/session",
    ),
    Advice(
        speakers=(),
        lacks=("no_content", "content_in_logs", "no_tool_arguments"),
        setting=f"{_CAPTURE}=true",
        note="the switch of the OTel GenAI conventions; instrumentations of your own set gen_ai.input.messages,"
        " gen_ai.output.messages, gen_ai.tool.call.arguments",
        source="opentelemetry.io/docs/specs/semconv/gen-ai",
    ),
    Advice(
        speakers=(),
        lacks=("no_tool_definitions",),
        setting='span.set_attribute("gen_ai.tool.definitions", json.dumps(tools))',
        note="on the model call's span, if the instrumentation has no switch for it",
        source="opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-agent-spans",
    ),
    Advice(
        speakers=(),
        lacks=("dropped_attributes",),
        setting="OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=4096",
        note="the SDK's default is 128, and the Python SDK evicts the oldest: the question goes first",
        source="opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables",
    ),
    Advice(
        speakers=(),
        lacks=("truncated",),
        setting="unset OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
        note="or SpanLimits(max_attribute_length=...); values are cut in the middle",
        source="opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables",
    ),
    Advice(
        speakers=(),
        lacks=("no_root",),
        setting="tracer_provider.shutdown()",
        note="before the process ends, and every service of a trace must export to the same Spanwise;"
        " windows.trace.root_grace must be longer than the slowest exporter's delay",
        source="opentelemetry.io/docs/specs/otel/trace/sdk",
    ),
    Advice(
        speakers=(),
        lacks=("no_tokens",),
        setting='stream_options={"include_usage": True}',
        note="for streamed answers of OpenAI-like APIs (LangChain: stream_usage=True)",
        source="platform.openai.com/docs/api-reference/chat/create",
    ),
)


def advise(lack: Lack, *, scopes: Iterable[str], dialects: Iterable[str]) -> tuple[Advice, ...]:
    """What mends `lack` in spans of these scopes and dialects: the own advice of their stack, else the general one."""
    scopes, dialects = tuple(scopes), tuple(dialects)
    fitting = [a for a in ADVICE if lack in a.lacks and a.fits(scopes, dialects)]
    own = tuple(a for a in fitting if a.speakers)
    return own or tuple(fitting)
