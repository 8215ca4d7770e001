"""Which dialect a span speaks. Decided per span: one trace often mixes several."""

from __future__ import annotations

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


def read_facts(span: Span) -> Facts:
    """The facts of one span, by the first dialect that fits; what it leaves open is completed from the conventions."""
    attributes = span.attributes
    if langfuse.speaks(span):
        return complete(langfuse.read(span))
    if mlflow.speaks(span):
        return complete(mlflow.read(span))
    if openinference.MARK in attributes:
        return complete(openinference.read(span))
    if vercel_ai.speaks(span):
        return complete(vercel_ai.read(span))
    if langsmith.MARK in attributes:
        return langsmith.read(span)
    if google_adk.speaks(span):
        return google_adk.read(span)
    if pydantic_ai.speaks(span):
        return pydantic_ai.read(span)
    if traceloop.speaks(span):
        return traceloop.read(span)
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
