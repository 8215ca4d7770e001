"""LiteLLM's span of the raw request and answer, `llm.<provider>.*`: each parameter as Python shows it.

It stands inside LiteLLM's span of the call, which has the counts, but in older versions loses calls and their ids.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from evaluators.dialects.content import usage
from evaluators.dialects.content.content import Content
from evaluators.dialects.content.facts import Facts
from evaluators.dialects.decoding.decode import ask
from evaluators.dialects.decoding.key_sets import Question
from evaluators.dialects.decoding.values import string, unwrap
from evaluators.model import Span


class _RawPrefix(Question):
    """The answer: `llm.<provider>.`, empty when no raw request is there."""

    __slots__ = ()

    def answer(self, names: AbstractSet[str]) -> str:
        for name in sorted(names):
            head, _, tail = name.rpartition(".")
            if (
                tail in ("messages", "contents")
                and head.startswith("llm.")
                and head.count(".") == 1
            ):
                return f"{head}."
        return ""


_PREFIX = _RawPrefix()


def speaks(span: Span) -> bool:
    """Whether it is such a span."""
    return span.scope == "litellm" and bool(ask(span.attributes, _PREFIX))


def read(span: Span) -> Facts:
    """The facts of a raw request."""
    get = span.attributes.get
    prefix: str = ask(span.attributes, _PREFIX)
    facts = Facts(span=span, dialect="litellm", kind="llm")
    given = get(f"{prefix}messages") or get(f"{prefix}contents")
    facts.input = Content(given, "input")
    answer = get(f"{prefix}choices") or get(f"{prefix}candidates")
    said = get(f"{prefix}content")  # Anthropic's message
    if answer is not None:
        facts.output = Content(answer, "output")
    elif said is not None:
        facts.output = Content(lambda: [{"role": "assistant", "content": unwrap(said)}], "output")
    facts.system = get(f"{prefix}system")
    if get(f"{prefix}tools") is not None:
        facts.definitions = Content(get(f"{prefix}tools"), "input")
    facts.model = string(get(f"{prefix}model"))
    facts.response_id = string(get(f"{prefix}id"))
    facts.tokens = usage.read_usage_object(unwrap(get(f"{prefix}usage")))
    return facts
