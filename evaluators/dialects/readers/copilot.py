"""GitHub Copilot CLI: the GenAI conventions, one trace per prompt. Failed commands and refusals have spans as well."""

from evaluators.dialects.content.facts import Facts
from evaluators.dialects.decoding.values import string
from evaluators.dialects.dialect import Dialect, sample_by, scope_is
from evaluators.dialects.fields import row
from evaluators.dialects.readers import genai
from evaluators.model import Rejection, Span

_REFUSALS: dict[str, Rejection] = {"denied": "policy", "rejected": "user"}
"""Who refused a call, by the type of its error: a rule, or that no one could be asked; or the person who was."""


def _read(span: Span) -> Facts:
    facts = genai.read(span, "copilot")
    get = span.attributes.get
    if (
        facts.kind == "agent" and facts.agent == "invoke_agent"
    ):  # its span's name: it has none itself
        facts.agent, facts.names_agent = "copilot", False
    elif facts.kind == "tool":
        facts.rejected = _REFUSALS.get(string(get("error.type")) or "")
        if get("process.exit.code"):
            facts.tool_error = facts.tool_error or "error"
    return facts


COPILOT = Dialect(
    name="copilot",
    speaks=scope_is("github.copilot"),
    read=_read,
    reads=(
        row("tool name", "tool", "gen_ai.tool.name"),
        row("arguments", "tool", "gen_ai.tool.call.arguments"),
        row("result", "tool", "gen_ai.tool.call.result"),
    ),
    scopes=("github.copilot",),
    advice="""
        content: OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true
            exports prompts, answers, arguments and results of tools with the contents of files that were read
            docs.github.com/en/copilot/reference/enterprise-administrators/opentelemetry-reference
    """,
    sample=sample_by("gen_ai.operation.name", tool="execute_tool", scope="github.copilot"),
)
