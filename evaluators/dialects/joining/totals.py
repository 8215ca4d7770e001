"""Sums over a trace: tokens, cost, models, tools offered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from evaluators.dialects.content.definitions import read_definitions, tools_in_request
from evaluators.dialects.content.facts import NO_TOKENS, Facts
from evaluators.dialects.content.kernel import function_name, speaks_kernel
from evaluators.dialects.joining.model_calls import Exchange
from evaluators.dialects.joining.tree import Tree
from evaluators.model import Tokens, ToolDefinition
from evaluators.prices import cost


def sum_tokens(tree: Tree, exchanges: Sequence[Exchange]) -> Tokens:
    """Over the model calls, each once; where none has counts, the sum an outer span states."""
    counted = [tokens for e in exchanges if (tokens := e.tokens) is not NO_TOKENS]
    if not counted:
        stated = [f for f in tree.order if f.aggregate is not NO_TOKENS]
        outer = [
            f for f in stated if not any(a.aggregate is not NO_TOKENS for a in tree.ancestors(f))
        ]
        counted = [f.aggregate for f in outer]
    return Tokens(
        input=_sum(t.input for t in counted),
        output=_sum(t.output for t in counted),
        cached=_sum(t.cached for t in counted),
        reasoning=_sum(t.reasoning for t in counted),
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def sum_cost(exchanges: Sequence[Exchange]) -> float | None:
    """USD over all calls; an exported cost wins over a computed one. None when a counted call has no known price."""
    total, known = 0.0, False
    for exchange in exchanges:
        price = exchange.cost
        if price is None and (tokens := exchange.tokens) is not NO_TOKENS:
            price = cost(exchange.model, tokens)
            if price is None:
                return None
        if price is not None:
            total, known = total + price, True
    return round(total, 12) if known else None


def tools_offered(tree: Tree) -> tuple[ToolDefinition, ...]:
    """Every tool once, by name, with the fullest definition there is, in order of appearance."""
    kernel = speaks_kernel(tree.scopes)
    found: dict[str, ToolDefinition] = {}
    seen: set[str] = set()
    for span in tree.order:
        if span.definitions is None and not span.request_tools:
            continue
        for definition in _definitions(span, seen):
            if kernel:
                definition = replace(definition, name=function_name(definition.name))  # noqa: PLW2901
            known = found.get(definition.name)
            if known is None or (known.parameters is None and definition.parameters is not None):
                found[definition.name] = definition
    return tuple(found.values())


def _definitions(facts: Facts, seen: set[str]) -> tuple[ToolDefinition, ...]:
    if facts.definitions is not None:
        raw = facts.definitions.raw
        if isinstance(raw, str):
            if raw in seen:  # the same list is repeated in every call
                return ()
            seen.add(raw)
        return read_definitions(facts.definitions.value)
    if facts.request_tools and facts.input is not None:
        return tools_in_request(facts.input.value)
    return ()
