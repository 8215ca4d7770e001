"""All dialects, and which of them reads a span. Decided per span: one trace often mixes several.

Fields that a dialect left open are filled from the GenAI attributes of the same span.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import NamedTuple

from evaluators.dialects.content import usage
from evaluators.dialects.content.facts import PLAIN, Content, Facts, Wraps
from evaluators.dialects.content.outcomes import settle
from evaluators.dialects.decoding.decode import Attributes, names_of
from evaluators.dialects.decoding.values import string
from evaluators.dialects.dialect import ANY, Dialect, Reader
from evaluators.dialects.readers import genai, langgraph
from evaluators.dialects.readers.claude_code import CLAUDE_CODE
from evaluators.dialects.readers.codex import CODEX
from evaluators.dialects.readers.copilot import COPILOT
from evaluators.dialects.readers.gemini_cli import GEMINI_CLI
from evaluators.dialects.readers.genai_dialects import (
    AGENT_FRAMEWORK,
    ANTHROPIC_SDK,
    AUTOGEN,
    FLAT_MESSAGES,
    GENAI,
    GENAI_EVENTS,
    KOOG,
    SEMANTIC_KERNEL,
)
from evaluators.dialects.readers.genkit import GENKIT
from evaluators.dialects.readers.google_adk import GOOGLE_ADK
from evaluators.dialects.readers.haystack import HAYSTACK
from evaluators.dialects.readers.laminar import LAMINAR
from evaluators.dialects.readers.langfuse import LANGFUSE
from evaluators.dialects.readers.langsmith import LANGSMITH
from evaluators.dialects.readers.langwatch import LANGWATCH
from evaluators.dialects.readers.litellm import LITELLM
from evaluators.dialects.readers.livekit import LIVEKIT
from evaluators.dialects.readers.logfire import LOGFIRE
from evaluators.dialects.readers.mastra import MASTRA
from evaluators.dialects.readers.mlflow import MLFLOW
from evaluators.dialects.readers.monocle import MONOCLE
from evaluators.dialects.readers.opencode import OPENCODE
from evaluators.dialects.readers.openinference import OPENINFERENCE
from evaluators.dialects.readers.openlit import OPENLIT
from evaluators.dialects.readers.pipecat import PIPECAT
from evaluators.dialects.readers.pydantic_ai import PYDANTIC_AI
from evaluators.dialects.readers.quarkus import QUARKUS
from evaluators.dialects.readers.qwen_code import QWEN_CODE
from evaluators.dialects.readers.rig import RIG
from evaluators.dialects.readers.spring_ai import SPRING_AI
from evaluators.dialects.readers.traceloop import TRACELOOP
from evaluators.dialects.readers.vercel_ai import VERCEL_AI
from evaluators.dialects.readers.voltagent import VOLTAGENT
from evaluators.model import Span

_AGENTCORE_IN = ("agentcore.invocation.user_prompt", "agentcore.invocation.input")
_AGENTCORE_OUT = ("agentcore.invocation.agent_response", "agentcore.invocation.output")
"""What AWS's AgentCore puts on the root of an invocation."""
_INPUTS = ("langfuse.trace.input", "langfuse.observation.input", "input.value", *_AGENTCORE_IN)
_OUTPUTS = ("langfuse.trace.output", "langfuse.observation.output", "output.value", *_AGENTCORE_OUT)
_WORK = frozenset({"llm", "tool", "handoff"})
"""Kinds of spans whose content is a step's own, not the turn's."""


class Stamped(NamedTuple):
    """Question and answer that a program put on its own span for a backend, with a plain `set_attribute`.

    Users of Langfuse and of OpenInference do so on spans of another instrumentation, without the type or kind that
    marks the spans of those SDKs (langfuse.com/docs/opentelemetry, arize.com/docs/phoenix/tracing).
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def stamped_in(names: AbstractSet[str]) -> Stamped | None:
    """Those among the attributes of these names; None: there are none."""
    found = Stamped(*(tuple(key for key in keys if key in names) for keys in (_INPUTS, _OUTPUTS)))
    return found if any(found) else None


def with_stamped(facts: Facts, keys: Stamped) -> Facts:
    if facts.kind in _WORK:
        return facts
    attributes = facts.span.attributes
    for key in keys.inputs if facts.input is None else ():
        facts.input = facts.input or Content(attributes.get(key), "input")
    for key in keys.outputs if facts.output is None else ():
        facts.output = facts.output or Content(attributes.get(key), "output")
    return facts


DIALECTS: tuple[Dialect, ...] = (
    LANGFUSE,  # backends' SDKs come first: they add attributes to the spans of other instrumentations
    MLFLOW,
    LANGWATCH,
    MONOCLE,
    OPENCODE,  # before the SDK that it is made with
    VERCEL_AI,  # before OpenInference, which adds its keys to these spans
    OPENINFERENCE,
    LANGSMITH,
    MASTRA,  # frameworks with attributes of their own, which no two of them share
    GENKIT,
    VOLTAGENT,
    SPRING_AI,
    QUARKUS,
    KOOG,
    RIG,
    LAMINAR,
    LIVEKIT,
    PIPECAT,
    GOOGLE_ADK,
    PYDANTIC_AI,
    TRACELOOP,  # its decorators may be around any of those above
    HAYSTACK,
    CLAUDE_CODE,
    CODEX,
    COPILOT,
    GEMINI_CLI,
    QWEN_CODE,
    LITELLM,
    OPENLIT,
    LOGFIRE,  # the conventions under a scope of its own, as the rest
    AUTOGEN,
    ANTHROPIC_SDK,
    AGENT_FRAMEWORK,
    SEMANTIC_KERNEL,
    GENAI_EVENTS,  # before GENAI, whose spans may carry their content in events
    GENAI,
    FLAT_MESSAGES,
)
"""The first that fits reads the span. A new dialect is one file in `readers/` and one line here."""


def _read_plain(span: Span) -> Facts:
    return Facts(span=span, dialect=PLAIN, wraps="mention")


_PLAIN = Dialect(name=PLAIN, speaks=ANY, read=_read_plain)  # a span that no dialect reads
_SCOPES = 16  # scopes remembered for one set of keys


def read_facts(span: Span) -> Facts:
    attributes = span.attributes
    read: Reader | None
    if not isinstance(attributes, Attributes):
        read = find_reader(span)
    else:  # remembered with the keys: this is done for each span
        readers = attributes.shape.readers
        key = (span.scope, True) if span.events else span.scope
        read = readers.get(key)
        if read is None:
            if len(readers) >= _SCOPES:
                readers.clear()
            read = readers[key] = find_reader(span)
    facts = read(span)
    if facts.tool_name is not None or facts.kind == "tool":
        settle(facts)
    return facts


def is_read(scope: str, keys: AbstractSet[str], events: Sequence[str]) -> bool:
    """Whether a dialect has the scope by name or reads its spans with attributes and events of these names."""
    return any(
        (scope.startswith((*each.scopes, each.name)) or each.speaks.holds(scope, keys))
        and (each.event is None or any(name.startswith(each.event) for name in events))
        for each in DIALECTS
    )


def find_reader(span: Span) -> Reader:
    """The reader of all spans that agree with this one in scope, keys and whether they have events."""
    keys = names_of(span.attributes)
    by_event: Dialect | None = None
    fitting = [each for each in DIALECTS if each.speaks.holds(span.scope, keys)]
    speaking = [each for each in fitting if each.content.holds(span.scope, keys)]
    for dialect in (*speaking, *fitting, _PLAIN):
        if dialect.event is not None:
            by_event = dialect if span.events else None
            continue
        read = _reader_of(dialect, span.scope, keys)
        if by_event is None:
            return read
        other = _reader_of(by_event, span.scope, keys)
        return partial(_read_by_event, f"{by_event.event}", other, read)
    raise AssertionError("a plain span is anything")


def _reader_of(dialect: Dialect, scope: str, keys: AbstractSet[str]) -> Reader:
    read = dialect.reader(scope, keys)
    if dialect.completed:
        read = partial(_read_completed, read)
    stamped = stamped_in(keys)
    if stamped is not None:
        read = partial(_read_stamped, stamped, read)
    in_graph = langgraph.keys_in(keys)
    if in_graph is not None:
        read = partial(_read_in_graph, in_graph, read)
    return read if dialect.wraps is None else partial(_read_wrapping, dialect.wraps, read)


def _read_completed(read: Reader, span: Span) -> Facts:
    return complete(read(span))


def _read_stamped(keys: Stamped, read: Reader, span: Span) -> Facts:
    return with_stamped(read(span), keys)


def _read_in_graph(keys: langgraph.MetadataKeys, read: Reader, span: Span) -> Facts:
    return langgraph.name_agent(read(span), keys)


def _read_wrapping(wraps: Wraps, read: Reader, span: Span) -> Facts:
    facts = read(span)
    facts.wraps = wraps
    return facts


def _read_by_event(prefix: str, read: Reader, otherwise: Reader, span: Span) -> Facts:
    for event in span.events:
        if event.name.startswith(prefix):
            return read(span)
    return otherwise(span)


def complete(facts: Facts) -> Facts:
    """The same facts, completed; the dialect's own are kept."""
    span = facts.span
    if facts.kind == "llm":
        facts.tokens = usage.completed(
            facts.tokens, usage.read_tokens(span.attributes, usage.GENAI)
        )
    if not genai.speaks(span) or (facts.kind == "other" and not genai.has_content(span)):
        return facts
    if facts.kind == "tool" and _knows_its_call(facts):
        facts.agent = facts.agent or string(span.attributes.get("gen_ai.agent.name"))
        return facts
    other = genai.read(span)
    if facts.kind == "other" and other.kind == "tool":
        other.dialect = facts.dialect
        return other
    facts.agent = facts.agent or other.agent
    if facts.kind == "tool":
        _complete_tool(facts, other)
        return facts
    if facts.kind == "llm":
        facts.model = facts.model or other.model
        facts.response_id = other.response_id or facts.response_id
        facts.cost = facts.cost if facts.cost is not None else other.cost
    facts.system = other.system if facts.system is None else facts.system
    facts.input = _better(facts.input, other.input)
    facts.output = _better(facts.output, other.output)
    facts.definitions = other.definitions or facts.definitions
    return facts


def _knows_its_call(facts: Facts) -> bool:
    return None not in (facts.tool_name, facts.tool_id, facts.arguments, facts.result)


def _complete_tool(facts: Facts, other: Facts) -> None:
    facts.tool_id = facts.tool_id or other.tool_id
    if other.kind != "tool":
        return
    facts.tool_name = other.tool_name or facts.tool_name
    if facts.arguments is None:
        facts.arguments = other.arguments
    if facts.result is None:
        facts.result = other.result
    facts.tool_error = facts.tool_error or other.tool_error


def _better(own: Content | None, other: Content | None) -> Content | None:
    return own if other is None else other
