"""Monocle (`monocle_apptrace`, of the Linux Foundation): what was said in the events `data.input` and `data.output`."""

from evaluators.dialects.content import usage
from evaluators.dialects.content.facts import Content, Facts
from evaluators.dialects.content.messages import role_of
from evaluators.dialects.content.tools import arguments_of
from evaluators.dialects.decoding.values import as_dict, as_list, string, unwrap
from evaluators.dialects.dialect import Dialect, has, kinds, sample_by, scope
from evaluators.dialects.fields import row
from evaluators.model import JSON, Span

_TYPE = "span.type"
_ENTITIES = 8
"""Things that a span is of, `entity.1` and on: the recorded ones have at most three."""
_KINDS = kinds(
    llm="inference inference.framework",
    tool="agentic.tool.invocation agentic.mcp.invocation",
    agent="agentic.invocation",
    handoff="agentic.delegation",
)


def _said(span: Span, event: str, key: str) -> JSON:
    found = (each.attributes.get(key) for each in span.events if each.name == event)
    return next((value for value in found if value is not None), None)


def _messages(value: JSON) -> JSON:
    """`{role: words}` of each message, and a call or several in place of words, as messages."""
    inner = unwrap(value)
    found: list[JSON] = []
    for each in as_list(inner) or [inner]:
        item = as_dict(unwrap(each))
        role, words = next(iter(item.items()), ("", None))
        if len(item) != 1 or role_of(role) is None:
            return inner
        content = unwrap(words)
        calls = [c for c in as_list(content) or [content] if as_dict(c).get("type") == "tool_call"]
        said: dict[str, JSON] = {"tool_calls": calls} if calls else {"content": words}
        found.append({"role": role, **said})
    return found


def _named(span: Span, kind: str) -> str | None:
    get = span.attributes.get
    for number in range(1, _ENTITIES + 1):
        if str(get(f"entity.{number}.type")).startswith(kind):
            return string(get(f"entity.{number}.name"))
    return None


def _read(span: Span) -> Facts:
    facts = Facts(span=span, dialect="monocle")
    asked, answered = _said(span, "data.input", "input"), _said(span, "data.output", "response")
    facts.kind = _KINDS.get(str(span.attributes.get(_TYPE)), "other")
    if facts.kind == "tool":
        facts.tool_name = string(span.attributes.get("entity.1.name")) or span.name or None
        facts.arguments, facts.result = arguments_of(asked), answered
        facts.agent = _named(span, "agent.")
        if description := string(span.attributes.get("entity.1.description")):
            facts.definitions = Content(
                [{"name": facts.tool_name, "description": description}], "input"
            )
        return facts
    if asked is not None:
        facts.input = Content(lambda: _messages(asked), "input")
    if answered is not None:
        facts.output = Content(lambda: _messages(answered), "output")
    if facts.kind == "agent":
        facts.agent = _named(span, "agent.")
        facts.names_agent = facts.agent is not None
    if facts.kind == "llm":
        facts.model = _named(span, "model.")
        counts = [each.attributes for each in span.events if each.name == "metadata"]
        facts.tokens = usage.read_usage_object(dict(counts[-1]) if counts else None)
    return facts


MONOCLE = Dialect(
    name="monocle",
    speaks=scope("monocle_apptrace") | has("monocle_apptrace.version"),
    completed=True,
    read=_read,
    reads=(
        *(row("input", on, "event data.input: input") for on in ("model call", "agent", "step")),
        *(
            row("output", on, "event data.output: response")
            for on in ("model call", "agent", "step")
        ),
        row("tool name", "tool", "entity.1.name"),
        row("arguments", "tool", "event data.input: input"),
        row("result", "tool", "event data.output: response"),
        row("input tokens", "model call", "event metadata: prompt_tokens"),
        row("output tokens", "model call", "event metadata: completion_tokens"),
    ),
    scopes=("monocle_apptrace",),
    advice="""
        no_session: with monocle_trace_scope("agentic.session", "..."):
            from monocle_apptrace, around each turn
            source of monocle_apptrace 0.8.15, instrumentation/common/scope_wrapper.py
        no_tool_definitions: (no setting)
            it describes the tool of each call, and none that was only offered
            captures of monocle_apptrace 0.8.15
        content: (no setting)
            it writes what is asked and answered as events of its spans, without a switch; its obfuscators
            (MONOCLE_SPAN_OBFUSCATORS) replace secrets in it
            source of monocle_apptrace 0.8.15, instrumentation/common/span_handler.py
    """,
    sample=sample_by(
        _TYPE,
        call="inference.framework",
        tool="agentic.tool.invocation",
        agent="agentic.invocation",
        step="agentic.turn",
        scope="monocle_apptrace",
    ),
)
