"""Steps of agents whose model calls left no spans: an agent span that answers is then all that is known of the step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evaluators.dialects.content.facts import Content, Facts
from evaluators.dialects.joining.model_calls import Exchange
from evaluators.dialects.joining.texts import cap
from evaluators.dialects.joining.tree import Agents, Tree
from evaluators.model import AgentStep


def find_agent_steps(
    tree: Tree, exchanges: Sequence[Exchange], agents: Agents
) -> tuple[AgentStep, ...]:
    """Agent spans with output messages and no model call beneath them, in order of start.

    Where one agent span with output stands within another, only the inner one is a step.
    """
    answered = [
        facts
        for facts in tree.order
        if facts.kind == "agent" and facts.output is not None and _says(facts.output)
    ]
    if not answered:
        return ()
    leaves = (facts for exchange in exchanges for facts in exchange.layers)
    around = _around(tree, (*leaves, *answered))
    return tuple(
        AgentStep(
            span_id=facts.span.span_id,
            agent=agents.named_by(facts),
            output=cap(facts.output.text if facts.output else None),
            start_time_unix_nano=facts.span.start_time_unix_nano,
            end_time_unix_nano=facts.span.end_time_unix_nano,
        )
        for facts in answered
        if facts.span.span_id not in around
    )


def _says(output: Content) -> bool:
    return bool(output.messages and output.text)


def _around(tree: Tree, inner: Iterable[Facts]) -> set[str]:
    """The spans around any of these; a chain that was walked before is not walked again."""
    found: set[str] = set()
    for facts in inner:
        for outer in tree.ancestors(facts):
            if outer.span.span_id in found:
                break
            found.add(outer.span.span_id)
    return found
