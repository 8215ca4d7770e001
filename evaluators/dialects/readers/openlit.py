"""openlit: the conventions, functions under `@openlit.trace`, and until 1.3x a call's messages as one text.

That text is `role: content` per line; the tool calls of the answer are beside it in attributes.
"""

import re

from evaluators.dialects.content.facts import Content, Facts
from evaluators.dialects.decoding.decode import ask
from evaluators.dialects.decoding.key_sets import Among
from evaluators.dialects.decoding.values import as_dict, as_list, string, unwrap
from evaluators.dialects.dialect import Dialect, Sample, scope, scope_is
from evaluators.dialects.fields import row
from evaluators.dialects.readers import genai
from evaluators.model import JSON, Span

_EMPTY = (None, "", "()", "{}")
_NONE = (None, "", "None")
_CALLS = Among("gen_ai.response.tool_calls", "gen_ai.tool.name")
_ROLE = re.compile(r"^(system|developer|user|assistant|tool): ", re.MULTILINE)


def _read(span: Span) -> Facts:
    facts = genai.read(span, "openlit")
    if facts.kind == "llm":
        _read_call(span, facts)
    elif facts.kind == "other" and span.scope == "openlit":
        _read_function(span, facts)
    elif span.attributes.get("gen_ai.operation.name") == "graph_execution":
        facts.input = None  # the thread's first message, not the turn's
    return facts


def _read_function(span: Span, facts: Facts) -> None:
    """Arguments and result of a traced function, which may be an agent, a step or a tool."""
    get = span.attributes.get
    facts.tool_name = string(span.name)
    facts.arguments = _recorded(get("function.kwargs"))
    answer = get("gen_ai.output.messages")
    facts.result = get("gen_ai.completion") if answer is None else answer
    sent = facts.arguments if facts.arguments is not None else _recorded(get("function.args"))
    if facts.input is None and sent is not None:
        facts.input = Content(sent, "input")


def _recorded(value: JSON) -> JSON:
    if value in _EMPTY:
        return None
    inner = unwrap(value)
    if isinstance(inner, str) and inner.startswith("("):
        inner = unwrap(f"[{inner[1:-1]}]")
    return as_dict(inner) or as_list(inner) or None


def _read_call(span: Span, facts: Facts) -> None:
    sent, received = facts.input, facts.output
    if sent is not None and not span.attributes.get("gen_ai.input.messages"):
        facts.input = Content(lambda: _by_lines(sent.value), "input")
    if not ask(span.attributes, _CALLS):
        return
    calls = _calls(span)
    if calls and not any(message.calls for message in facts.messages_out):
        text = received.text if received is not None else None
        facts.output = Content(
            [
                {
                    "role": "assistant",
                    "content": None if text in _NONE else text,
                    "tool_calls": calls,
                }
            ],
            "output",
        )


def _calls(span: Span) -> list[JSON]:
    """The tool calls of an answer: all of them in newer versions, else the first."""
    get = span.attributes.get
    calls = as_list(unwrap(get("gen_ai.response.tool_calls")))
    if calls or not string(get("gen_ai.tool.name")):
        return calls
    recorded = get("gen_ai.tool.args")
    recorded = get("gen_ai.tool.call.arguments") if recorded is None else recorded
    names, ids = (str(get(f"gen_ai.tool.{key}") or "").split(", ") for key in ("name", "call.id"))
    arguments: list[JSON] = [unwrap(recorded)]
    if len(names) > 1:  # one text has several calls
        arguments = as_list(unwrap(f"[{recorded}]"))
    if not len(names) == len(ids) == len(arguments):
        return []
    calls_found = zip(names, ids, arguments, strict=True)
    return [
        {"name": name, "id": id_ or None, "arguments": value} for name, id_, value in calls_found
    ]


def _by_lines(value: JSON) -> JSON:
    """The messages in a text of `role: content`; a content may have several lines."""
    messages = as_list(value)
    text = as_dict(messages[0]).get("content") if len(messages) == 1 else None
    if not isinstance(text, str) or not _ROLE.match(text):
        return value
    pieces = _ROLE.split(text)
    pairs = zip(pieces[1::2], pieces[2::2], strict=True)
    return [
        {"role": role, "content": content}
        for role, content in ((role, line.removesuffix("\n")) for role, line in pairs)
        if content not in _NONE
    ]


OPENLIT = Dialect(
    name="openlit",
    speaks=scope_is("openlit") | scope("openlit."),
    read=_read,
    reads=(
        row("input", "agent", "function.kwargs", "function.args"),
        row("tool name", "model call", "gen_ai.response.tool_calls", "gen_ai.tool.name"),
        row("tool call id", "model call", "gen_ai.tool.call.id"),
        row("arguments", "model call", "gen_ai.tool.args", "gen_ai.tool.call.arguments"),
    ),
    advice="""
        content: openlit.init(capture_message_content=True)
            true is its default, so something sets it to false
            openlit 1.45.0, openlit/__init__.py
        no_session: with openlit.using_attributes({"session.id": "..."}):
            around each turn; since openlit 1.40
            openlit 1.45.0, openlit/__init__.py
    """,
    sample=Sample(
        scope="openlit",
        spans={
            "model call": {"gen_ai.operation.name": "chat", "gen_ai.tool.name": "some_tool"},
            "agent": {},
        },
    ),
)
