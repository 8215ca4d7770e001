"""What Claude Code leaves out unless a switch is set, and what each switch gives away."""

from evaluators.dialects.dialect import NO_SETTING, Advice

_DOCS = "code.claude.com/docs/en/monitoring-usage; recordings of 2.1.330"

ADVICE: tuple[Advice, ...] = (
    Advice(
        lacks=("no_content", "no_question"),
        setting="OTEL_LOG_USER_PROMPTS=1",
        note="exports what people type, with whatever they paste",
        source=_DOCS,
    ),
    Advice(
        lacks=("no_content",),
        setting="OTEL_LOGS_EXPORTER=otlp OTEL_LOG_ASSISTANT_RESPONSES=1",
        note="answers stand in log events alone; exports what Claude says, with the code that it quotes",
        source=_DOCS,
    ),
    Advice(
        lacks=("no_tool_arguments",),
        setting="OTEL_LOG_TOOL_DETAILS=1",
        note="exports commands, paths, edits, and the names of MCP servers and their tools",
        source=_DOCS,
    ),
    Advice(
        lacks=("no_tool_results",),
        setting="CLAUDE_CODE_ENHANCED_TELEMETRY_BETA=1 OTEL_TRACES_EXPORTER=otlp OTEL_LOG_TOOL_CONTENT=1",
        note="results stand in the beta spans alone; exports what commands print and what files hold",
        source=_DOCS,
    ),
    Advice(
        lacks=("truncated",),
        setting=NO_SETTING,
        note="an answer above 60 KB is exported without its end",
        source=_DOCS,
    ),
    Advice(
        lacks=("no_tool_definitions",),
        setting=NO_SETTING,
        note="OTEL_LOG_RAW_API_BODIES=1 exports requests with their system prompt, but cuts them within the tools",
        source=_DOCS,
    ),
)
