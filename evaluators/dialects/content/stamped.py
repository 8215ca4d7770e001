"""Question and answer that a program put on its own span for a backend, with a plain `set_attribute`.

Users of Langfuse and of OpenInference do so on spans of another instrumentation, without the type or kind that marks
the spans of those SDKs (langfuse.com/docs/opentelemetry, arize.com/docs/phoenix/tracing).
"""

from collections.abc import Set as AbstractSet
from typing import NamedTuple

from evaluators.dialects.content.facts import Content, Facts

_AGENTCORE_IN = ("agentcore.invocation.user_prompt", "agentcore.invocation.input")
_AGENTCORE_OUT = ("agentcore.invocation.agent_response", "agentcore.invocation.output")
"""What AWS's AgentCore puts on the root of an invocation."""
_INPUTS = ("langfuse.trace.input", "langfuse.observation.input", "input.value", *_AGENTCORE_IN)
_OUTPUTS = ("langfuse.trace.output", "langfuse.observation.output", "output.value", *_AGENTCORE_OUT)
_WORK = frozenset({"llm", "tool", "handoff"})
"""Kinds of spans whose content is a step's own, not the turn's."""


class Stamped(NamedTuple):
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def stamped_in(names: AbstractSet[str]) -> Stamped | None:
    """Those among the attributes of these names; None: there are none."""
    found = Stamped(*(tuple(key for key in keys if key in names) for keys in (_INPUTS, _OUTPUTS)))
    return found if any(found) else None


def with_stamped(facts: Facts, keys: Stamped) -> Facts:
    if facts.kind in _WORK:
        return facts
    attributes = facts.span.attributes
    for key in keys.inputs if facts.input is None else ():
        facts.input = facts.input or Content(attributes.get(key), "input")
    for key in keys.outputs if facts.output is None else ():
        facts.output = facts.output or Content(attributes.get(key), "output")
    return facts
