"""Google's Agent Development Kit: Gemini shapes under `gcp.vertex.agent.*` (1.x), beside the conventions since."""

from evaluators.dialects import fields
from evaluators.dialects.content import usage
from evaluators.dialects.content.facts import NO_TOKENS, Facts, Kind
from evaluators.dialects.content.tools import arguments_of
from evaluators.dialects.decoding.values import as_dict, unwrap
from evaluators.dialects.dialect import CAPTURE, OPT_IN, Dialect, has, sample_by, scope_is
from evaluators.dialects.readers import genai
from evaluators.model import JSON

_PREFIX = "gcp.vertex.agent."
_REQUEST = f"{_PREFIX}llm_request"
_RESPONSE = f"{_PREFIX}llm_response"
_ARGUMENTS = f"{_PREFIX}tool_call_args"
_RESULT = f"{_PREFIX}tool_response"
_EMPTY = ("{}", "N/A", "<not specified>", "null")
"""How ADK writes a value whose content it does not capture."""


def _kind(facts: Facts) -> Kind:
    """By the conventions, else by the span's name, which also names the agent or the tool."""
    if facts.kind not in ("other", "llm"):
        return facts.kind
    head, _, tail = facts.span.name.partition(" ")
    name = tail.strip("[]") or None
    if head == "call_llm":
        return "llm"
    if head in ("agent_run", "invoke_agent"):
        facts.agent, facts.names_agent = facts.agent or name, True
        return "agent"
    if head in ("execute_tool", "tool_call"):
        facts.tool_name = facts.tool_name or name
        return "tool"
    return facts.kind


def _recorded(value: JSON) -> JSON:
    return value if value and value not in _EMPTY else None


def _answer(response: JSON) -> JSON:
    item = as_dict(unwrap(response))
    return [item["content"]] if isinstance(item.get("content"), dict) else item


def _finish(facts: Facts) -> None:
    get = facts.span.attributes.get
    if facts.kind == "tool":
        _finish_tool(facts)
    elif facts.kind == "llm":
        facts.request_tools = _recorded(get(_REQUEST)) is not None and facts.definitions is None
        response = _recorded(get(_RESPONSE))
        if facts.tokens is NO_TOKENS and response:
            item = as_dict(unwrap(response))
            stated = item.get("usage_metadata") or item.get("usageMetadata")
            facts.tokens = usage.read_usage_object(stated)


def _finish_tool(facts: Facts) -> None:
    get = facts.span.attributes.get
    facts.tool_id = None if facts.tool_id in _EMPTY else facts.tool_id
    recorded = get(_ARGUMENTS)
    # Without content, arguments and response are both emptied; a tool may well have no arguments.
    hidden = recorded in _EMPTY and (recorded != "{}" or get(_RESULT) in _EMPTY)
    if facts.arguments is None and not hidden:
        facts.arguments = arguments_of(recorded)
    if facts.result is None and facts.arguments:
        facts.result = get(_RESULT)
    response = unwrap(facts.result) if isinstance(facts.result, str) else facts.result
    item = as_dict(response)
    if item.keys() == {"result"}:  # how ADK wraps what is not an object
        facts.result = item["result"]


GOOGLE_ADK = Dialect(
    name="google_adk",
    speaks=scope_is("gcp.vertex.agent") | has(f"{_PREFIX}invocation_id"),
    base=genai.read,
    kind=_kind,
    fields={
        "llm": (
            fields.input_from(_REQUEST, read=_recorded),
            fields.output_from(_RESPONSE, read=_recorded, later=_answer),
            fields.model("gen_ai.request.model"),
        ),
        "tool": (fields.result(_RESULT, read=_recorded),),
    },
    finish=_finish,
    reads=(
        fields.row("arguments", "tool", _ARGUMENTS),
        fields.row("input tokens", "model call", _RESPONSE),
    ),
    scopes=("gcp.vertex.agent",),
    advice=f"""
        content: {OPT_IN} {CAPTURE}=SPAN_AND_EVENT
            google-adk 2.x exports no content without both
            README of the package opentelemetry-util-genai
        content: ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true
            google-adk 1.x; true is its default, so something sets it to false
            google/adk-python, src/google/adk/telemetry/tracing.py
    """,
    sample=sample_by(
        "gen_ai.operation.name",
        call="generate_content",
        tool="execute_tool",
        scope="gcp.vertex.agent",
    ),
)
