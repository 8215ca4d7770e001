"""Vercel AI SDK, v3 to v6: `ai.generateText` around `.doGenerate` and `ai.toolCall`."""

from evaluators.dialects import fields
from evaluators.dialects.content import usage
from evaluators.dialects.content.facts import Content, Facts, Kind
from evaluators.dialects.decoding.decode import ask, names_of
from evaluators.dialects.decoding.key_sets import Among, unflatten
from evaluators.dialects.decoding.values import as_dict, as_list, unwrap
from evaluators.dialects.dialect import Dialect, has, sample_by
from evaluators.model import JSON, Span

_OUTER = ("ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject")
_ANSWERS = Among(
    "ai.response.text",
    "ai.response.toolCalls",
    "ai.response.object",
    "ai.result.text",
    "ai.result.toolCalls",
    "ai.result.object",
)
_FUNCTIONS = "llm.request.functions."
"""OpenLLMetry for JS gives attributes of the SDK its own names."""


def _kind(facts: Facts) -> Kind:
    operation = str(facts.span.attributes.get("ai.operationId"))
    if operation == "ai.toolCall":
        return "tool"
    if operation in _OUTER:
        return "agent"
    calls = operation.endswith((".doGenerate", ".doStream")) and "embed" not in operation
    return "llm" if calls else "other"


def _prompt(value: JSON) -> JSON:
    """`{"system", "prompt"}` is a question in one text."""
    inner = as_dict(unwrap(value))
    if isinstance(inner.get("prompt"), str):
        messages: list[JSON] = [{"role": "user", "content": inner["prompt"]}]
        if isinstance(inner.get("system"), str):
            messages.insert(0, {"role": "system", "content": inner["system"]})
        return messages
    return value


def _answer(span: Span) -> JSON:
    get = span.attributes.get
    for stem in ("ai.response", "ai.result"):
        text = get(f"{stem}.text") or get(f"{stem}.object")
        calls = as_list(unwrap(get(f"{stem}.toolCalls")))
        if text or calls:
            parts = [{"type": "text", "text": text}]
            return [{"role": "assistant", "content": parts, "tool_calls": calls}]
    return None


def finish(facts: Facts) -> None:
    """Complete the facts: the answer, and the tools as OpenLLMetry names them."""
    span = facts.span
    get = span.attributes.get
    if facts.kind == "tool":
        return
    if ask(span.attributes, _ANSWERS):
        facts.output = Content(lambda: _answer(span), "output")
    if facts.definitions is None and f"{_FUNCTIONS}0.name" in span.attributes:
        names = names_of(span.attributes)
        facts.definitions = Content(lambda: unflatten(names, get, _FUNCTIONS), "input")


_AGENT = fields.agent("ai.telemetry.functionId")
_CONTENT = (
    fields.input_from("ai.prompt.messages", "ai.prompt", read=_prompt),
    fields.definitions("ai.prompt.tools"),
)

VERCEL_AI = Dialect(
    name="vercel_ai",
    speaks=has("ai.operationId"),
    completed=True,
    kind=_kind,
    fields={
        "llm": (
            *_CONTENT,
            fields.tokens(usage.VERCEL),
            fields.cost(*usage.COSTS),
            fields.model("ai.response.model", "ai.model.id"),
            fields.response_id("ai.response.id"),
            _AGENT,
        ),
        "tool": (
            fields.tool_name("ai.toolCall.name"),
            fields.tool_id("ai.toolCall.id"),
            fields.arguments("ai.toolCall.args", "ai.toolCall.input", "traceloop.entity.input"),
            fields.result("ai.toolCall.result", "ai.toolCall.output", "traceloop.entity.output"),
            _AGENT,
        ),
        "agent": (
            *_CONTENT,
            fields.aggregate(usage.VERCEL),
            fields.agent("ai.telemetry.functionId", default=fields.span_name),
        ),
        "other": _CONTENT,
    },
    finish=finish,
    reads=(
        fields.row("output", "model call", *(key for key in _ANSWERS if not key.endswith("Calls"))),
        fields.row("tools offered", "model call", f"{_FUNCTIONS}N.name"),
    ),
    advice="""
        content: experimental_telemetry: {isEnabled: true, recordInputs: true, recordOutputs: true}
            both are recorded by default, so something turns them off
            ai-sdk.dev/docs/ai-sdk-core/telemetry
        no_session: experimental_telemetry: {isEnabled: true, functionId: "<agent>", metadata: {sessionId: "..."}}
            ai-sdk.dev/docs/ai-sdk-core/telemetry
    """,
    sample=sample_by(
        "ai.operationId",
        call="ai.generateText.doGenerate",
        tool="ai.toolCall",
        agent="ai.generateText",
        step="ai.embed",
    ),
)
