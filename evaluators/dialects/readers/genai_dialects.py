"""The GenAI conventions as dialects: in attributes, in events, or under a scope that has a name of its own."""

from functools import partial

from evaluators.dialects.dialect import (
    ALL_CONTENT,
    ANY,
    CAPTURE,
    OPT_IN,
    Advice,
    Dialect,
    Sample,
    advice_of,
    has,
    sample_by,
    scope,
)
from evaluators.dialects.readers import genai, genai_events

AUTOGEN = Dialect(
    name="autogen",
    speaks=scope("autogen") & genai.SPEAKS,
    read=partial(genai.read, dialect="autogen"),
    advice="""
        content: OpenAIInstrumentor().instrument()
            of opentelemetry-instrumentation-openai: autogen's own spans never hold messages or arguments
            captures of autogen-agentchat 0.7.5 beside opentelemetry-instrumentation-openai 0.62.4
    """,
)
ANTHROPIC_SDK = Dialect(
    name="anthropic_sdk",
    speaks=scope("com.anthropic.sdk") & genai.SPEAKS,
    read=partial(genai.read, dialect="anthropic_sdk"),
)
AGENT_FRAMEWORK = Dialect(
    name="agent_framework",
    speaks=scope("agent_framework") & genai.SPEAKS,
    read=partial(genai.read, dialect="agent_framework"),
    advice="""
        content: ENABLE_SENSITIVE_DATA=true
            learn.microsoft.com/agent-framework/agents/observability
    """,
)
SEMANTIC_KERNEL = Dialect(
    name="semantic_kernel",
    speaks=scope("semantic_kernel", "Microsoft.SemanticKernel") & genai.SPEAKS,
    read=partial(genai.read, dialect="semantic_kernel"),
    scopes=("Microsoft.SemanticKernel",),
    advice="""
        content: SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true
            set before semantic_kernel is imported
            microsoft/semantic-kernel, model_diagnostics/model_diagnostics_settings.py
    """,
)
KOOG = Dialect(
    name="koog",
    speaks=has("koog.event.id"),
    read=partial(genai.read, dialect="koog"),
    advice="""
        content, no_tool_definitions: install(OpenTelemetry) { setVerbose(true) }
            by default it writes HIDDEN:non-empty in place of every text
            docs.koog.ai/opentelemetry-support
        no_session: agent.run(question, "...")
            the second argument is the session's id
            a recording of Koog
    """,
)
"""Under a scope that the application names. Unless it is verbose, every text is a mask: `HIDDEN:non-empty`."""
_OFFICIAL = (
    "opentelemetry.instrumentation.openai_v2",
    "opentelemetry.instrumentation.google_genai",
    "opentelemetry.instrumentation.vertexai",
    "opentelemetry.instrumentation.genai.",
    "opentelemetry.util.genai",
)


GENAI = Dialect(
    name="genai",
    speaks=genai.SPEAKS,
    read=partial(genai.read, dialect="genai"),
    reads=genai.ROWS,
    advice=(
        Advice(
            speakers=(*_OFFICIAL, "opentelemetry.instrumentation.openai_agents"),
            not_beside=("traceloop",),
            lacks=ALL_CONTENT,
            setting=f"{OPT_IN} {CAPTURE}=span_and_event",
            note="content is then in the spans; by default it is left out, or sent as log records only",
            source="opentelemetry-python-contrib.readthedocs.io, instrumentation-genai/openai",
        ),
        *advice_of("""
        no_session of gen_ai: telemetry: {includeRuntimeContext: {sessionId: true}}, runtimeContext: {sessionId}
            AI SDK 7; and registerTelemetry(new OpenTelemetry({runtimeContext: true}))
            source of the package @ai-sdk/otel, src/supplemental-attributes.ts
        content of @sentry/: Sentry.openAIIntegration({recordInputs: true, recordOutputs: true})
            also of the other integrations; or sendDefaultPii: true for all
            recordings of @sentry/node 10.78.0
        content of azure.ai: AZURE_TRACING_GEN_AI_CONTENT_RECORDING_ENABLED=true
            azuresdkdocs, azure.ai.projects.telemetry.agents
        no_tool_definitions of strands: OTEL_SEMCONV_STABILITYOPT_IN=gen_ai_latest_experimental,gen_ai_tool_definitions
            strands-agents/sdk-python, pull request 1113
        no_session of strands: Agent(trace_attributes={"session.id": "..."})
            strandsagents.com/docs/user-guide/observability-evaluation/traces
        """),
    ),
    sample=Sample(
        spans={
            "model call": {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai"},
            "tool": {"gen_ai.operation.name": "execute_tool"},
            "agent": {"gen_ai.operation.name": "invoke_agent"},
            "any": {"gen_ai.operation.name": "chat"},
        },
    ),
)
FLAT_MESSAGES = Dialect(
    name="traceloop",  # OpenLLMetry's, which some versions send alone
    speaks=has("gen_ai.prompt.0.role", "gen_ai.completion.0.role"),
    read=partial(genai.read, dialect="traceloop"),
)
GENAI_EVENTS = Dialect(
    name="genai_events",
    speaks=ANY,
    event="gen_ai.",
    read=partial(genai.read, dialect="genai_events"),
    reads=genai_events.ROWS,
    sample=sample_by("gen_ai.operation.name", call="chat", tool="execute_tool"),
)
