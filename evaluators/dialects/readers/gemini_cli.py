"""Gemini CLI: its spans with the words of its log records (`enrichment.gemini_family`), and records without a span.

An answer is a list of streamed chunks. A tool's result is in the request after it. A command that failed is a
success with `Exit Code: 1` in its output, and in newer versions with `isError` in the record's metadata.
"""

import re

from evaluators.dialects import fields
from evaluators.dialects.content import usage
from evaluators.dialects.content.facts import Facts
from evaluators.dialects.decoding.values import as_dict, as_list, string, unwrap
from evaluators.dialects.dialect import By, Dialect, kinds, sample_by, scope_is
from evaluators.dialects.enrichment.records import EVENT
from evaluators.model import JSON, Rejection

NAME = "gemini-cli"
_KINDS = kinds(
    llm="llm_call gemini_cli.api_request gemini_cli.api_response gemini_cli.api_error",
    tool="tool_call gemini_cli.tool_call",
    agent="agent_call user_prompt gemini_cli.user_prompt",
)
TOKENS = usage.TokenKeys(
    input=("input_token_count", "gen_ai.usage.input_tokens"),
    output=("output_token_count", "gen_ai.usage.output_tokens"),
    cached=("cached_content_token_count", "gen_ai.usage.cache_read.input_tokens"),
    reasoning=("thoughts_token_count",),
)
"""The counts of a record, then those of a span."""
REFUSALS: dict[str, Rejection] = {"policy_violation": "policy", "execution_denied": "policy"}
"""Who refused a call, by the type of its error."""
_PROGRAMS = "utility_"
"""How the role of a call begins in which the program asks for itself: which model fits, who speaks next, a summary."""
_EXIT = re.compile(r"^(?:Exit Code|Signal): (?!0$|\(none\)$|\(?null)", re.MULTILINE)
"""How a command that failed ends its output."""
_PROCESS = "\nProcess Group PGID: "


def read_result(content: JSON) -> tuple[JSON, bool]:
    """The output of a tool out of its wrapping, and whether it failed: as an error, or as a command that did."""
    wrapping = as_dict(content)
    for key in ("output", "error"):
        if wrapping.keys() == {key} and isinstance(text := wrapping[key], str):
            return _said(text), key == "error" or _EXIT.search(text) is not None
    if not isinstance(content, str):
        return content, False
    return _said(content), _EXIT.search(content) is not None


def _said(text: str) -> str:
    said, ending, _ = text.partition(_PROCESS)
    return said.removeprefix("<untrusted_context>\n") if ending else text


def answer_of(value: JSON) -> JSON:
    """One message of the chunks of a streamed answer; a text that is not a list of chunks as it is."""
    inner = unwrap(value)
    chunks = as_list(inner) if isinstance(inner, list) else [inner]
    parts = [part for chunk in chunks for part in _parts(as_dict(chunk))]
    if not parts:
        return inner if isinstance(inner, str) else None
    text = "".join(str(part.get("text") or "") for part in parts if part.get("thought") is not True)
    calls = [{"functionCall": call} for part in parts if (call := _call(part))]
    return [{"role": "model", "parts": [*([{"text": text}] if text else []), *calls]}]


def _parts(chunk: dict[str, JSON]) -> list[dict[str, JSON]]:
    candidates = as_list(chunk.get("candidates"))
    content = as_dict(as_dict(candidates[0]).get("content")) if candidates else chunk
    if "functionCall" in content:
        return [content]
    return [as_dict(part) for part in as_list(content.get("parts"))]


def _call(part: dict[str, JSON]) -> dict[str, JSON] | None:
    call = as_dict(part.get("functionCall"))
    name = string(call.get("name"))
    return {**call, "id": plain_id(string(call.get("id")), name)} if name else None


def plain_id(call_id: str | None, name: str | None) -> str | None:
    return call_id.removeprefix(f"{name}__") if call_id else None


def read_outcome(facts: Facts) -> None:
    get = facts.span.attributes.get
    if get("success") is False:
        error_type = string(get("error_type")) or string(get("error.type"))
        facts.tool_error = string(get("error")) or string(get("error.message")) or error_type
        facts.tool_error = facts.tool_error or "error"
        facts.rejected = REFUSALS.get(error_type or "")
    if get("decision") == "reject":
        facts.rejected = "user"


def _finish(facts: Facts) -> None:
    if facts.kind == "llm" and str(facts.span.attributes.get("role")).startswith(_PROGRAMS):
        facts.input = facts.output = None
    if facts.kind != "tool":
        return
    facts.tool_id = plain_id(facts.tool_id, facts.tool_name)
    facts.read_result = read_result
    read_outcome(facts)
    if as_dict(unwrap(facts.span.attributes.get("metadata"))).get("isError") is True:
        facts.tool_error = facts.tool_error or "error"


GEMINI_CLI = Dialect(
    name="gemini_cli",
    speaks=scope_is("gemini-cli"),
    kind=By("gen_ai.operation.name", EVENT, kinds=_KINDS),
    fields={
        "agent": (
            fields.agent("agent_name", default=lambda _: NAME, always=True),
            fields.input_from("prompt"),
        ),
        "llm": (
            fields.input_from("request_text", "gen_ai.input.messages"),
            fields.output_from("response_text", "gen_ai.output.messages", later=answer_of),
            fields.system("gen_ai.system_instructions"),
            fields.definitions("gen_ai.tool.definitions"),
            fields.tokens(TOKENS),
            fields.model("gen_ai.response.model", "model", "gen_ai.request.model"),
        ),
        "tool": (
            fields.tool_name("gen_ai.tool.name", "function_name"),
            fields.tool_id("gen_ai.tool.call_id", "gen_ai.tool.call.id", "call_id"),
            fields.arguments("function_args"),
        ),
    },
    finish=_finish,
    scopes=("gemini-cli",),
    advice="""
        content: settings.json: "telemetry": {"enabled": true, "logPrompts": true}
            exports prompts, answers, arguments, and whole conversations: what commands print and files hold
            geminicli.com/docs/cli/telemetry
    """,
    sample=sample_by(
        "gen_ai.operation.name",
        call="llm_call",
        tool="tool_call",
        agent="agent_call",
        scope="gemini-cli",
    ),
)
