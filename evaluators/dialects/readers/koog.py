"""Koog (Kotlin): the conventions under a scope that the application names; `koog.event.id` marks its spans.

Unless it is verbose, every text is a mask: `HIDDEN:non-empty`.
"""

from functools import partial

from evaluators.dialects.dialect import CONTENT, Advice, Dialect, has
from evaluators.dialects.readers import genai

KOOG = Dialect(
    name="koog",
    speaks=has("koog.event.id"),
    read=partial(genai.read, dialect="koog"),
    advice=(
        Advice(
            lacks=(*CONTENT, "no_tool_definitions"),
            setting="install(OpenTelemetry) { setVerbose(true) }",
            note="by default it writes HIDDEN:non-empty in place of every text",
            source="docs.koog.ai/opentelemetry-support",
        ),
        Advice(
            lacks=("no_session",),
            setting='agent.run(question, "...")',
            note="the second argument is the session's id",
            source="a recording of Koog",
        ),
    ),
)
