"""Qwen Code: its spans with the words of its log records (`enrichment.gemini_family`), and records without a span."""

from evaluators.dialects import fields
from evaluators.dialects.content.facts import Facts, Kind
from evaluators.dialects.dialect import By, Dialect, kinds, sample_by, scope_is
from evaluators.dialects.enrichment.records import EVENT
from evaluators.dialects.readers.gemini_cli import TOKENS, answer_of, read_outcome, read_result

_KINDS = kinds(
    llm="chat qwen-code.api_request qwen-code.api_response qwen-code.api_error",
    tool="execute_tool qwen-code.tool_call",
    agent="invoke_agent qwen-code.user_prompt",
)
_PROMPTS = frozenset({"prompt_suggestion", "forked_query", "speculation"})
_SIDE = "side-query:"
"""Ids of prompts that the program asks for itself: what a person may want to type next, a title, a summary."""
_by_operation = By("gen_ai.operation.name", EVENT, kinds=_KINDS)


def _kind(facts: Facts) -> Kind:
    return "tool" if "execution_status" in facts.span.attributes else _by_operation(facts)


def _is_programs(facts: Facts) -> bool:
    get = facts.span.attributes.get
    prompt = str(get("prompt_id") or get("qwen-code.prompt_id"))
    return prompt in _PROMPTS or prompt.startswith(_SIDE)


def _finish(facts: Facts) -> None:
    if facts.kind == "llm" and _is_programs(facts):
        facts.input = facts.output = None
    if facts.kind == "tool":
        facts.read_result = read_result
        read_outcome(facts)


QWEN_CODE = Dialect(
    name="qwen_code",
    speaks=scope_is("qwen-code"),
    kind=_kind,
    fields={
        "agent": (
            fields.agent(
                "subagent_name", "gen_ai.agent.name", default=lambda _: "qwen-code", always=True
            ),
            fields.input_from("prompt"),
        ),
        "llm": (
            fields.input_from("request_text"),
            fields.output_from("response_text", later=answer_of),
            fields.tokens(TOKENS),
            fields.model("gen_ai.response.model", "model", "gen_ai.request.model"),
            fields.response_id("gen_ai.response.id", "response_id"),
            fields.agent("subagent_name"),
        ),
        "tool": (
            fields.tool_name("gen_ai.tool.name", "tool_name", "function_name"),
            fields.tool_id("gen_ai.tool.call.id", "call_id", "tool.call_id"),
            fields.arguments("function_args"),
            fields.agent("gen_ai.agent.name", "subagent_name"),
        ),
    },
    finish=_finish,
    scopes=("qwen-code",),
    advice="""
        content: settings.json: "telemetry": {"enabled": true, "logPrompts": true}
            exports prompts, answers, arguments, and whole conversations: what commands print and files hold
            qwenlm.github.io/qwen-code-docs/en/developers/development/telemetry
        no_tool_definitions: (no setting)
            Qwen Code exports no definitions of tools
            recordings of @qwen-code/qwen-code 0.24.4
    """,
    sample=sample_by(
        "gen_ai.operation.name",
        call="chat",
        tool="execute_tool",
        agent="invoke_agent",
        scope="qwen-code",
    ),
)
