"""Which dialect a span speaks. Decided per span: one trace often mixes several."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from evaluators.dialects.content.facts import PLAIN, Facts, Wraps
from evaluators.dialects.decoding.decode import Attributes
from evaluators.dialects.readers import (
    claude_code,
    genai,
    genai_events,
    genkit,
    google_adk,
    haystack,
    langfuse,
    langsmith,
    litellm,
    logfire,
    mastra,
    mlflow,
    openinference,
    openlit,
    pydantic_ai,
    spring_ai,
    traceloop,
    vercel_ai,
    voltagent,
)
from evaluators.dialects.readers.complete import complete
from evaluators.model import Span

_WRAPS: dict[str, Wraps] = {
    PLAIN: "mention",
    "logfire": "mention",
    "langfuse": "name",
    "langsmith": "name",
    "mlflow": "name",
}
_THIN = (
    ("autogen", "autogen"),
    ("logfire", "logfire"),
    ("com.anthropic.sdk", "anthropic_sdk"),
    ("agent_framework", "agent_framework"),
    ("semantic_kernel", "semantic_kernel"),
    ("Microsoft.SemanticKernel", "semantic_kernel"),
)
"""Scopes whose spans follow the conventions and only get a name of their own."""


_Reader = Callable[[Span], Facts]
_READERS: tuple[tuple[Callable[[Span], bool], _Reader], ...] = (
    (langfuse.speaks, langfuse.read),
    (mlflow.speaks, mlflow.read),
    (vercel_ai.speaks, vercel_ai.read),  # before OpenInference, which adds its keys to these spans
    (openinference.speaks, openinference.read),
    (langsmith.speaks, langsmith.read),
    (mastra.speaks, mastra.read),
    (genkit.speaks, genkit.read),
    (voltagent.speaks, voltagent.read),
    (spring_ai.speaks, spring_ai.read),
    (google_adk.speaks, google_adk.read),
    (pydantic_ai.speaks, pydantic_ai.read),
    (traceloop.speaks, traceloop.read),
    (logfire.speaks, logfire.read),
    (haystack.speaks, haystack.read),
    (claude_code.speaks, claude_code.read),
    (litellm.speaks, litellm.read),
    (openlit.speaks, openlit.read),
)
"""First match wins; the first four have attributes of their own and are completed from the conventions.

`speaks` looks at scope and keys only, so the reader is chosen once for all spans that agree in both.
"""
_OWN = 4
_SCOPES = 16
"""Scopes remembered for one set of keys."""


def read_facts(span: Span) -> Facts:
    """The facts of one span, by the first dialect that fits."""
    facts = _reader_of(span)(span)
    facts.wraps = _WRAPS.get(facts.dialect)
    return facts


def _reader_of(span: Span) -> _Reader:
    attributes = span.attributes
    if not isinstance(attributes, Attributes):
        return _reader(span)
    readers = attributes.shape.readers
    read = readers.get(span.scope)
    if read is None:
        if len(readers) >= _SCOPES:
            readers.clear()
        read = readers[span.scope] = _reader(span)
    return read


def _reader(span: Span) -> _Reader:
    for index, (speaks, read) in enumerate(_READERS):
        if speaks(span):
            return partial(_completed, read) if index < _OWN else read
    for prefix, name in _THIN:
        if span.scope.startswith(prefix) and genai.speaks(span):
            return partial(genai.read, dialect=name)
    if genai.speaks(span):
        return partial(_unless_in_events, "genai")
    attributes = span.attributes
    if "gen_ai.prompt.0.role" in attributes or "gen_ai.completion.0.role" in attributes:
        return partial(_unless_in_events, "traceloop")
    return partial(_unless_in_events, PLAIN)


def _completed(read: _Reader, span: Span) -> Facts:
    return complete(read(span))


def _unless_in_events(dialect: str, span: Span) -> Facts:
    """The facts as `dialect` has them; a span whose events carry content is read as such."""
    if span.events and genai_events.speaks(span):
        return genai.read(span, "genai_events")
    if dialect == PLAIN:
        return Facts(span=span, dialect=PLAIN)
    return genai.read(span, dialect)
