"""Koog (Kotlin): the conventions under a scope that the application names; `koog.event.id` marks its spans.

Unless it is verbose, every text is a mask: `HIDDEN:non-empty`.
"""

from functools import partial

from evaluators.dialects.dialect import Dialect, has
from evaluators.dialects.readers import genai

KOOG = Dialect(
    name="koog",
    speaks=has("koog.event.id"),
    read=partial(genai.read, dialect="koog"),
    advice="""
        content, no_tool_definitions: install(OpenTelemetry) { setVerbose(true) }
            by default it writes HIDDEN:non-empty in place of every text
            docs.koog.ai/opentelemetry-support
        no_session: agent.run(question, "...")
            the second argument is the session's id
            a recording of Koog
    """,
)
