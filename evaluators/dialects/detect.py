"""Which dialect a span speaks. Decided per span: one trace often mixes several."""

from __future__ import annotations

from collections.abc import Callable

from evaluators.dialects import (
    genai,
    genai_events,
    google_adk,
    langfuse,
    langsmith,
    mlflow,
    openinference,
    pydantic_ai,
    traceloop,
    vercel_ai,
)
from evaluators.dialects.complete import complete
from evaluators.dialects.facts import Facts
from evaluators.model import Span

PLAIN = "plain"
_THIN = (
    ("autogen", "autogen"),
    ("logfire", "logfire"),
    ("com.anthropic.sdk", "anthropic_sdk"),
    ("agent_framework", "agent_framework"),
    ("semantic_kernel", "semantic_kernel"),
    ("Microsoft.SemanticKernel", "semantic_kernel"),
)
"""Scopes whose spans follow the conventions and only get a name of their own."""


_READERS: tuple[tuple[Callable[[Span], bool], Callable[[Span], Facts]], ...] = (
    (langfuse.speaks, langfuse.read),
    (mlflow.speaks, mlflow.read),
    (openinference.speaks, openinference.read),
    (vercel_ai.speaks, vercel_ai.read),
    (langsmith.speaks, langsmith.read),
    (google_adk.speaks, google_adk.read),
    (pydantic_ai.speaks, pydantic_ai.read),
    (traceloop.speaks, traceloop.read),
)
"""First match wins; the first four have attributes of their own and are completed from the conventions."""
_OWN = 4


def read_facts(span: Span) -> Facts:
    """The facts of one span, by the first dialect that fits."""
    for index, (speaks, read) in enumerate(_READERS):
        if speaks(span):
            return complete(read(span)) if index < _OWN else read(span)
    return _conventional(span)


def _conventional(span: Span) -> Facts:
    for prefix, name in _THIN:
        if span.scope.startswith(prefix) and genai.speaks(span):
            return genai.read(span, name)
    if genai_events.speaks(span):
        return genai.read(span, "genai_events")
    if genai.speaks(span):
        return genai.read(span, "genai")
    if "gen_ai.prompt.0.role" in span.attributes or "gen_ai.completion.0.role" in span.attributes:
        return genai.read(span, "traceloop")
    return Facts(span=span, dialect=PLAIN)
