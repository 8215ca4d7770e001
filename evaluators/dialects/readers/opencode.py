"""opencode: the Vercel AI SDK's spans among a thousand of its own runtime, one trace per prompt.

One more model call names the session: it costs tokens and answers no one. A command's exit code is in the result.
"""

from dataclasses import replace

from evaluators.dialects.content.facts import Facts
from evaluators.dialects.decoding.values import as_dict, unwrap
from evaluators.dialects.dialect import has, scope_is
from evaluators.dialects.readers import vercel_ai

_TITLE = "You are a title generator."
"""How the system prompt of the call that names a session begins."""
_BEGINNING = 200  # characters of a request within which its system prompt begins


def _finish(facts: Facts) -> None:
    vercel_ai.finish(facts)
    facts.agent = None if facts.agent == "session.llm" else facts.agent  # what every call is named
    if facts.kind == "agent":
        facts.agent = facts.agent or "opencode"
    if facts.kind == "tool":
        _read_result(facts)
    elif facts.input is not None and _TITLE in str(facts.input.raw)[:_BEGINNING]:
        facts.output = None


def _read_result(facts: Facts) -> None:
    wrapping = as_dict(unwrap(facts.result))
    if "output" in wrapping and "metadata" in wrapping:
        facts.result = wrapping["output"]
        if as_dict(wrapping["metadata"]).get("exit"):
            facts.tool_error = facts.tool_error or "error"


OPENCODE = replace(
    vercel_ai.VERCEL_AI,
    name="opencode",
    speaks=scope_is("opencode") & has("ai.operationId"),
    finish=_finish,
    scopes=("opencode",),
    sample=replace(
        vercel_ai.VERCEL_AI.sample,
        scope="opencode",
        spans={
            **vercel_ai.VERCEL_AI.sample.spans,
            "model call": {"ai.operationId": "ai.streamText.doStream"},
            "agent": {"ai.operationId": "ai.streamText"},
        },
    ),
    advice="""
        content: opencode.json: "experimental": {"openTelemetry": true}
            exports prompts, answers, arguments and results of tools with the contents of files that were read
            recordings of opencode-ai 1.18.33
    """,
)
