"""Genkit (JS, Go, Python): `genkit:*` attributes; a span's kind is in `genkit:metadata:subtype`.

The `generate` spans between them repeat what the models' spans hold.
"""

from evaluators.dialects import fields
from evaluators.dialects.content import usage
from evaluators.dialects.content.facts import Content, Facts
from evaluators.dialects.decoding.values import as_dict, as_list, string, unwrap
from evaluators.dialects.dialect import By, Dialect, Sample, has, kinds
from evaluators.model import JSON, Tokens

_TYPE = "genkit:type"
_NAME = "genkit:name"
_INPUT = "genkit:input"
_OUTPUT = "genkit:output"
_SESSION = ("sessionId", "session_id", "conversationId", "threadId")


def _finish(facts: Facts) -> None:
    """A model call's request and answer hold all that is known of it; a flow's input may name the session."""
    get = facts.span.attributes.get
    if facts.kind == "agent" and get("genkit:isRoot") is True:
        sent = as_dict(unwrap(get(_INPUT)))
        facts.session = next((text for key in _SESSION if (text := string(sent.get(key)))), None)
    if facts.kind != "llm":
        return
    request, answer = as_dict(unwrap(get(_INPUT))), as_dict(unwrap(get(_OUTPUT)))
    raw = as_dict(answer.get("raw") or answer.get("custom"))
    name = string(get(_NAME)) or facts.span.name
    facts.tokens = _tokens(answer.get("usage"))
    facts.model = string(raw.get("model")) or name.rpartition("/")[2] or None
    facts.response_id = string(raw.get("id"))
    facts.input = Content([_message(item) for item in as_list(request.get("messages"))], "input")
    message = answer.get("message")
    if message is None:  # before 1.0 a model answered with candidates
        message = as_dict(next(iter(as_list(answer.get("candidates"))), None)).get("message")
    facts.output = Content([_message(message)], "output") if message is not None else None
    if isinstance(request.get("tools"), list):
        facts.definitions = Content(request["tools"], "input")


def _tokens(value: JSON) -> Tokens:
    counts = as_dict(value)
    return usage.read_usage_object(
        {
            **counts,
            "cachedContentTokenCount": counts.get("cachedContentTokens"),
            "thoughtsTokenCount": counts.get("thoughtsTokens"),
        }
    )


def _message(value: JSON) -> JSON:
    item = as_dict(value)
    return {"role": item.get("role"), "parts": [_part(p) for p in as_list(item.get("content"))]}


def _part(value: JSON) -> JSON:
    part = as_dict(value)
    call, answer = as_dict(part.get("toolRequest")), as_dict(part.get("toolResponse"))
    if call:
        return {
            "type": "tool_call",
            "id": call.get("ref"),
            "name": call.get("name"),
            "arguments": call.get("input"),
        }
    if answer:
        return {
            "type": "tool_call_response",
            "id": answer.get("ref"),
            "name": answer.get("name"),
            "response": answer.get("output"),
        }
    return {"type": "text", "content": part["text"]} if "text" in part else part


GENKIT = Dialect(
    name="genkit",
    speaks=has(_TYPE),
    kind=By(
        "genkit:metadata:subtype",
        _TYPE,
        kinds=kinds(llm="model background-model", tool="tool tool.v2", agent="flow agent"),
    ),
    fields={
        "tool": (
            fields.tool_name(_NAME, default=fields.span_name),
            fields.arguments(_INPUT),
            fields.result(_OUTPUT),
        ),
        "agent": (
            fields.agent(_NAME, default=fields.span_name, always=True),
            fields.input_from(_INPUT),
            fields.output_from(_OUTPUT),
        ),
    },
    finish=_finish,
    reads=(
        fields.row("input", "model call", _INPUT),
        fields.row("output", "model call", _OUTPUT),
        fields.row("tools offered", "model call", _INPUT),
        fields.row("input tokens", "model call", _OUTPUT),
        fields.row("model", "model call", _NAME),
    ),
    advice="""
        no_session [nodejs]: setCustomMetadataAttributes({sessionId: "..."})
            from genkit/tracing, first thing in each flow; or an input with a field sessionId
            source of the package @genkit-ai/core, tracing
        no_session [go]: trace.SpanFromContext(ctx).SetAttributes(attribute.String("session.id", "..."))
            of go.opentelemetry.io/otel, first thing in each flow; or an input with a field sessionId
            source of github.com/firebase/genkit/go, core/tracing
        no_session [python]: trace.get_current_span().set_attribute("session.id", "...")
            of opentelemetry, first thing in each flow; or an input with a field sessionId
            opentelemetry.io/docs/languages/python/instrumentation
    """,
    sample=Sample(
        spans={
            "model call": {"genkit:type": "action", "genkit:metadata:subtype": "model"},
            "tool": {"genkit:type": "action", "genkit:metadata:subtype": "tool"},
            "agent": {"genkit:type": "action", "genkit:metadata:subtype": "flow"},
        },
    ),
)
