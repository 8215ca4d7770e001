"""Logfire's own instrumentations: `request_data` and `response_data`, `events`, and its spans of the OpenAI Agents SDK.

Since version 5 the conventions' messages are beside them and win. Spans that people make with logfire are not calls.
"""

from evaluators.dialects.content import usage
from evaluators.dialects.content.facts import NO_TOKENS, Content, Facts
from evaluators.dialects.content.tools import arguments_of
from evaluators.dialects.decoding.values import as_dict, as_list, string, unwrap
from evaluators.dialects.dialect import Dialect, Sample, has, scope, scope_is
from evaluators.dialects.fields import row
from evaluators.dialects.readers import genai
from evaluators.model import JSON, Span

AGENTS = "logfire.openai_agents"
"""Scope of the spans of the OpenAI Agents SDK, whose kinds are the beginnings of their names."""
_PROVIDERS = ("logfire.openai", "logfire.anthropic")
_MARKS = frozenset({"request_data", "response_data", "events"})
_NO_CHAT = ("Embedding", "Image", "Text → Speech", "Speech → Text")


def _read(span: Span) -> Facts:
    facts = genai.read(span, "logfire")
    if span.scope == AGENTS:
        _read_agents(span, facts)
    elif _is_call(span):
        _read_call(span, facts)
    return facts


def _is_call(span: Span) -> bool:
    if not span.scope.startswith(_PROVIDERS) or span.name.startswith(_NO_CHAT):
        return False
    return not _MARKS.isdisjoint(span.attributes)


def _read_call(span: Span, facts: Facts) -> None:
    """A model call. A streamed one is two spans: one of the request, and a later one of request and answer."""
    get = span.attributes.get
    if facts.output is not None:
        return
    _be_call(span, facts)
    request, response = get("request_data"), get("response_data")
    if "events" in span.attributes:
        _read_events(span, facts)
        return
    if isinstance(request, str) and facts.input is None:
        facts.input = Content(request, "input")
        facts.request_tools = facts.definitions is None
    if response is None:
        if isinstance(request, str) and '"stream":true' in request:
            facts.kind = "other"
        return
    answer = as_dict(unwrap(response))
    anthropic = span.scope == "logfire.anthropic"
    facts.output = Content(lambda: _answer(answer, anthropic=anthropic), "output")
    if facts.tokens is NO_TOKENS:
        facts.tokens = usage.read_usage_object(answer.get("usage"))


def _be_call(span: Span, facts: Facts) -> None:
    get = span.attributes.get
    facts.kind, facts.aggregate = "llm", NO_TOKENS
    facts.tokens = usage.read_tokens(span.attributes, usage.GENAI)
    facts.cost = usage.read_cost(span.attributes)
    facts.model = string(get("gen_ai.response.model")) or string(get("gen_ai.request.model"))
    if facts.model is None:
        facts.model = string(as_dict(unwrap(get("request_data"))).get("model"))


def _answer(answer: dict[str, JSON], *, anthropic: bool) -> JSON:
    """The message; Anthropic's calls have their arguments in one `input` more. Streamed texts came in chunks."""
    message = as_dict(answer.get("message"))
    if not message:
        text = answer.get("combined_chunk_content") or answer.get("text")
        return [{"role": "assistant", "content": text}] if text else None
    if anthropic:
        calls = [_without_input(as_dict(call)) for call in as_list(message.get("tool_calls"))]
        message = {**message, "tool_calls": calls}
    return [{**message, "role": "assistant"}]


def _without_input(call: dict[str, JSON]) -> JSON:
    function = as_dict(call.get("function"))
    arguments = as_dict(unwrap(function.get("arguments")))
    if arguments.keys() != {"input"}:
        return call
    return {**call, "function": {**function, "arguments": arguments["input"]}}


def _read_events(span: Span, facts: Facts) -> None:
    raw = span.attributes.get("events")
    facts.input = facts.input or Content(lambda: _split(raw)[0], "input")
    facts.output = Content(lambda: _split(raw)[1], "output")


def _split(raw: JSON) -> tuple[JSON, JSON]:
    events = as_list(unwrap(raw))
    end = len(events)
    while end and as_dict(events[end - 1]).get("role") == "assistant":
        end -= 1
    return events[:end], events[end:]


# --- the OpenAI Agents SDK -------------------------------------------------------------------------------------------


def _read_agents(span: Span, facts: Facts) -> None:
    get = span.attributes.get
    facts.kind = "other"
    if span.name.startswith("Agent run"):
        facts.kind, facts.agent = "agent", string(get("name"))
        facts.names_agent = facts.agent is not None
        if get("tools") is not None:
            facts.definitions = Content(get("tools"), "input")
    elif span.name.startswith("Function"):
        _read_function(span, facts)
    elif span.name.startswith("Handoff"):
        facts.kind = "handoff"
    elif span.name.startswith(("Responses API", "Chat completion")):
        _be_call(span, facts)
        _read_exchange(span, facts)


def _read_function(span: Span, facts: Facts) -> None:
    get = span.attributes.get
    facts.kind = "tool"
    facts.tool_name = string(get("name")) or span.name.partition(": ")[2] or None
    facts.arguments, facts.result = arguments_of(get("input")), get("output")
    error = as_dict(unwrap(get("error")))
    if error:
        inner = as_dict(error.get("data")).get("error")
        facts.tool_error = string(inner) or string(error.get("message")) or "error"


def _read_exchange(span: Span, facts: Facts) -> None:
    """A response with its request's `raw_input`, or a chat completion's `input` and `output`."""
    get = span.attributes.get
    if "response" in span.attributes or "raw_input" in span.attributes:
        response = get("response")
        facts.definitions = Content(response, "input")
        facts.output = Content(response, "output")
        facts.response_id = string(get("response_id"))
        if get("raw_input") is not None:
            facts.input = Content(get("raw_input"), "input")
            facts.system = as_dict(unwrap(response)).get("instructions")
        elif "events" in span.attributes:
            facts.input = Content(lambda: _split(get("events"))[0], "input")
    elif "output" in span.attributes or "input" in span.attributes:
        facts.input = Content(get("input"), "input")
        facts.output = Content(get("output"), "output")
    elif "events" in span.attributes:
        _read_events(span, facts)


LOGFIRE = Dialect(
    name="logfire",
    speaks=scope_is(AGENTS)
    | (scope(*_PROVIDERS) & has(*_MARKS))
    | (scope("logfire") & genai.SPEAKS),
    wraps="mention",
    read=_read,
    reads=(
        row("input", "model call", "request_data", "raw_input", "input", "events"),
        row("output", "model call", "response_data", "response", "output", "events"),
        row("tools offered", "model call", "request_data", "response"),
        row("tools offered", "agent", "tools"),
        row("tool name", "tool", "name"),
        row("arguments", "tool", "input"),
        row("result", "tool", "output"),
        row("agent", "agent", "name"),
        row("session", "agent", "group_id"),
    ),
    advice="""
        scrubbed: logfire.configure(scrubbing=False)
            or scrubbing=logfire.ScrubbingOptions(callback=...) that returns match.value for session ids
            logfire.pydantic.dev/docs/how-to-guides/scrubbing
    """,
    sample=Sample(
        scope="logfire.openai_agents",
        names={
            "model call": "Chat completion with",
            "tool": "Function: {name}",
            "agent": "Agent run",
        },
        spans={"model call": {}, "tool": {}, "agent": {}},
    ),
)
