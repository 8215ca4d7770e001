"""LiteLLM's span of the raw request and answer, `llm.<provider>.*`: each parameter as Python shows it.

It is inside LiteLLM's span of the call, which has the counts, but in older versions loses calls and their ids.
"""

from collections.abc import Set as AbstractSet

from evaluators.dialects.content import usage
from evaluators.dialects.content.facts import Content, Facts
from evaluators.dialects.decoding.decode import ask
from evaluators.dialects.decoding.values import string, unwrap
from evaluators.dialects.dialect import Condition, Dialect, sample_by, scope_is
from evaluators.dialects.fields import row
from evaluators.model import Span


def _raw_prefix(names: AbstractSet[str]) -> str:
    """`llm.<provider>.`, empty when no raw request is there."""
    for name in sorted(names):
        head, _, tail = name.rpartition(".")
        if tail in ("messages", "contents") and head.startswith("llm.") and head.count(".") == 1:
            return f"{head}."
    return ""


def _read(span: Span) -> Facts:
    get = span.attributes.get
    prefix: str = ask(span.attributes, _raw_prefix)
    facts = Facts(span=span, dialect="litellm", kind="llm")
    facts.input = Content(get(f"{prefix}messages") or get(f"{prefix}contents"), "input")
    answer = get(f"{prefix}choices") or get(f"{prefix}candidates")
    message = get(f"{prefix}content")  # Anthropic's
    if answer is not None:
        facts.output = Content(answer, "output")
    elif message is not None:
        facts.output = Content(
            lambda: [{"role": "assistant", "content": unwrap(message)}], "output"
        )
    facts.system = get(f"{prefix}system")
    if get(f"{prefix}tools") is not None:
        facts.definitions = Content(get(f"{prefix}tools"), "input")
    facts.model = string(get(f"{prefix}model"))
    facts.response_id = string(get(f"{prefix}id"))
    facts.tokens = usage.read_usage_object(unwrap(get(f"{prefix}usage")))
    return facts


LITELLM = Dialect(
    name="litellm",
    speaks=scope_is("litellm") & Condition(lambda _scope, keys: bool(_raw_prefix(keys))),
    read=_read,  # the provider's name is inside each key
    reads=(
        row("input", "model call", "llm.openai.messages"),
        row("output", "model call", "llm.openai.choices"),
        row("tools offered", "model call", "llm.openai.tools"),
        row("model", "model call", "llm.openai.model"),
        row("input tokens", "model call", "llm.openai.usage"),
    ),
    sample=sample_by("llm.openai.messages", call="[]", scope="litellm"),
)
