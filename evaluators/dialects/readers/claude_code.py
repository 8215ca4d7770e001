"""Claude Code and the Claude Agent SDK: log events, and beta spans (`claude_code.interaction`, `.tool`, ...).

A span has what the records of its call say beside it (`enrichment.claude_code`); without it the records stand for it.
Tokens are under bare names, the question in `prompt` or `user_prompt`, a tool's result in a span event. That a tool
failed is in its record and on the span of its execution, inside the tool's own.
"""

from evaluators.dialects import fields
from evaluators.dialects.content import usage
from evaluators.dialects.content.facts import NO_TOKENS, Content, Facts, Kind
from evaluators.dialects.content.tools import arguments_of
from evaluators.dialects.decoding.values import as_dict, string, unwrap
from evaluators.dialects.dialect import Dialect, kinds, sample_by, scope
from evaluators.dialects.readers import genai
from evaluators.dialects.turns.claude_code import NOTIFICATION, is_main
from evaluators.model import JSON, Rejection, Span

_KINDS = kinds(llm="llm_request", tool="tool tool.execution", agent="interaction")
_EVENTS = kinds(
    llm="api_request api_error api_refusal api_retries_exhausted assistant_response",
    tool="tool_decision tool_result",
    agent="user_prompt subagent_completed",
)
_CUT = "[TRUNCATED - Content exceeds"
"""How the last line begins of a text that was too long."""
_RESULTS = ("output", "content", "diff")
"""What the event `tool.output` calls a result: of a command, of a file that was read, of an edit."""


def _read_conventions(span: Span, dialect: str) -> Facts:
    facts = genai.read(span, dialect)
    facts.tokens = facts.aggregate = NO_TOKENS  # its own counts are what Anthropic's API says
    return facts


def _kind(facts: Facts) -> Kind:
    get = facts.span.attributes.get
    kind = get("span.type")
    if kind is None:
        return _EVENTS.get(str(get("spanwise.log.event")).removeprefix("claude_code."), "other")
    return _KINDS.get(str(kind), "other")


def _question(value: JSON) -> JSON:
    """None of what no one typed."""
    text = string(value)
    return None if text is None or text.lstrip().startswith(NOTIFICATION) else text


def _answer(value: JSON) -> Content | None:
    """A text; one that was too long without its last line, which says so."""
    text = string(value)
    if text is None:
        return None
    place = text.rfind(_CUT, -200)
    if place < 0:
        return Content(text, "output")
    said = text[:place].rstrip()
    return Content(said, "output", _cut=True, _value=said)


def _finish(facts: Facts) -> None:
    get = facts.span.attributes.get
    if facts.kind == "agent":
        facts.agent, facts.names_agent = string(get("agent_type")) or "claude_code", False
        facts.output = _answer(get("response")) or facts.output
    elif facts.kind == "llm":
        _finish_model_call(facts)
    elif get("span.type") == "tool.execution":
        facts.tool_name, facts.tool_id = None, string(get("tool_use_id"))
        facts.tool_error = string(get("error")) if get("success") is False else None
    elif facts.kind == "tool":
        _finish_tool_call(facts)


def _finish_model_call(facts: Facts) -> None:
    get = facts.span.attributes.get
    facts.agent = string(get("agent.name"))
    facts.tokens = usage.read_usage_object(
        {
            "input_tokens": get("input_tokens"),
            "output_tokens": get("output_tokens"),
            "cache_read_input_tokens": get("cache_read_tokens") or None,
        }
    )
    facts.output = facts.output or _answer(get("response"))
    if not is_main(string(get("query_source")) or "") and not get("agent_id"):
        facts.input = facts.output = None  # what the program asks for itself is no one's question
    # Of a request that was cut the last tools are missing, and calls of them would be faults.
    facts.request_tools = facts.input is not None and not get("request_body_truncated")
    facts.answers_apart = True


def _finish_tool_call(facts: Facts) -> None:
    get = facts.span.attributes.get
    facts.agent = string(get("agent.name"))
    parameters = as_dict(unwrap(get("tool_parameters")))
    if get("tool_input_size_bytes") or get(
        "decision"
    ):  # of a record: the name by which the model called it
        facts.tool_name = _name(string(get("tool_name")), parameters) or facts.tool_name
    if facts.arguments is None:
        facts.arguments = _command(parameters, get("full_command"))
    elif facts.tool_name == "Edit" and as_dict(facts.arguments).get("replace_all") is False:
        # Its default, which is in what ran, not in what the model asked for.
        facts.arguments = {k: v for k, v in facts.arguments.items() if k != "replace_all"}
    for event in facts.span.events:
        if event.name == "tool.output" and facts.result is None:
            for name in _RESULTS:
                facts.result = facts.result or event.attributes.get(name, facts.result)
    decision = get("decision") or get("decision_type")
    facts.rejected = _rejection(decision, get("source") or get("decision_source"))
    facts.unanswered = decision == "accept" and get("success") is get("span.type") is None
    if facts.rejected is None and get("success") in ("false", False):
        facts.tool_error = string(get("error")) or string(get("error_type")) or "error"


def _name(name: str | None, parameters: dict[str, JSON]) -> str | None:
    if name != "mcp_tool":
        return name
    server, tool = parameters.get("mcp_server_name"), parameters.get("mcp_tool_name")
    return f"mcp__{server}__{tool}" if server and tool else name


def _command(parameters: dict[str, JSON], full: JSON) -> JSON:
    command = parameters.get("full_command") or full
    if not command:
        return None
    others = {k: v for k, v in parameters.items() if k not in ("bash_command", "full_command")}
    return arguments_of({"command": command, **others})


def _rejection(decision: JSON, source: JSON) -> Rejection | None:
    if decision != "reject":
        return None
    return "user" if str(source).startswith("user") else "policy"


CLAUDE_CODE = Dialect(
    name="claude_code",
    speaks=scope("com.anthropic.claude_code"),
    base=_read_conventions,
    kind=_kind,
    fields={
        "llm": (
            fields.over(fields.model("model", "gen_ai.request.model")),
            fields.over(fields.response_id("request_id")),
            fields.cost("cost_usd"),
            fields.input_from("request_body"),
            fields.output_from("response_body"),
        ),
        "tool": (
            fields.tool_name("tool_name"),
            fields.tool_id("tool_use_id"),
            fields.arguments("tool_input"),
        ),
        "agent": (fields.over(fields.input_from("prompt", "user_prompt", read=_question)),),
    },
    finish=_finish,
    reads=(
        fields.row("output", "agent", "response"),
        fields.row("output", "model call", "response"),
        fields.row("arguments", "tool", "full_command"),
        fields.row(
            "result",
            "tool",
            *(f"event tool.output: {key}" for key in _RESULTS),
        ),
        fields.row("input tokens", "model call", "input_tokens"),
        fields.row("output tokens", "model call", "output_tokens"),
        fields.row("cached tokens", "model call", "cache_read_tokens"),
    ),
    scopes=("com.anthropic.claude_code",),
    advice="""
        no_content, no_question: OTEL_LOG_USER_PROMPTS=1
            exports what people type, with whatever they paste
            code.claude.com/docs/en/monitoring-usage; recordings of 2.1.330
        no_content: OTEL_LOGS_EXPORTER=otlp OTEL_LOG_ASSISTANT_RESPONSES=1
            answers are in log events alone; exports what Claude says, with the code that it quotes
            code.claude.com/docs/en/monitoring-usage; recordings of 2.1.330
        no_tool_arguments: OTEL_LOG_TOOL_DETAILS=1
            exports commands, paths, edits, and the names of MCP servers and their tools
            code.claude.com/docs/en/monitoring-usage; recordings of 2.1.330
        no_tool_results: CLAUDE_CODE_ENHANCED_TELEMETRY_BETA=1 OTEL_TRACES_EXPORTER=otlp OTEL_LOG_TOOL_CONTENT=1
            results are in the beta spans alone; exports what commands print and what files hold
            code.claude.com/docs/en/monitoring-usage; recordings of 2.1.330
        truncated: (no setting)
            an answer above 60 KB is exported without its end
            code.claude.com/docs/en/monitoring-usage; recordings of 2.1.330
        no_tool_definitions: (no setting)
            OTEL_LOG_RAW_API_BODIES=1 exports requests with their system prompt, but cuts them within the tools
            code.claude.com/docs/en/monitoring-usage; recordings of 2.1.330
    """,
    sample=sample_by(
        "span.type",
        call="llm_request",
        tool="tool",
        agent="interaction",
        scope="com.anthropic.claude_code.tracing",
    ),
)
