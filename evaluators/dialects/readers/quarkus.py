"""Quarkus LangChain4j: the conventions' older names; a prompt is the texts of all messages, joined by line ends.

Its messages have no roles, so a question can only be recognised where nothing else was sent, or one line that says who
the model is.
"""

import re

from evaluators.dialects.content.facts import Content, Facts
from evaluators.dialects.decoding.values import string
from evaluators.dialects.dialect import Dialect, scope_is
from evaluators.dialects.readers import genai
from evaluators.model import JSON, Span

_SWITCH = "quarkus.langchain4j.tracing.include-"

_SYSTEM = re.compile(r"(?:You are|You're|Act as|Your (?:job|role|task) is)\s")
"""How system prompts begin, and questions do not."""


def _read(span: Span) -> Facts:
    facts = genai.read(span, "quarkus")
    sent = string(span.attributes.get("gen_ai.prompt"))
    if facts.kind == "llm" and sent is not None:
        facts.input = Content(_messages(sent.strip()), "input")
    return facts


def _messages(sent: str) -> list[JSON]:
    first, _, question = sent.partition("\n")
    if _SYSTEM.match(first) is None:
        first, question = "", sent
    if "\n" in question or not question:
        return []
    system: list[JSON] = [{"role": "system", "content": first}] if first else []
    return [*system, {"role": "user", "content": question}]


QUARKUS = Dialect(
    name="quarkus",
    speaks=scope_is("io.quarkus.opentelemetry") & genai.SPEAKS,
    read=_read,
    advice=f"""
        no_content: {_SWITCH}prompt=true {_SWITCH}completion=true
            docs.quarkiverse.io/quarkus-langchain4j/dev/observability.html
        no_question: span.setAttribute("input.value", question)
            on a span around the turn, with output.value for the answer: the prompt is exported as the texts of all
            messages in one, without roles
            a recording of quarkus-langchain4j under Quarkus 3.33
        no_tool_arguments, no_tool_results: {_SWITCH}tool-arguments=true {_SWITCH}tool-result=true
            docs.quarkiverse.io/quarkus-langchain4j/dev/observability.html
        no_tool_definitions: (no setting)
            it never exports the tools that a model was offered
            a recording of quarkus-langchain4j under Quarkus 3.33
    """,
)
