"""Executions of tools in spans that do not say what they are, because people wrapped their functions by hand."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evaluators.dialects.content.facts import Facts
from evaluators.dialects.content.tool_values import arguments_of, outcome_of
from evaluators.dialects.joining.agents import Agents
from evaluators.dialects.joining.model_calls import Exchange
from evaluators.dialects.joining.tool_call import FoundCall, call_of_span, error_text, span_error
from evaluators.dialects.joining.tree import Tree
from evaluators.dialects.readers.mlflow import plain_name

_UNMARKED = frozenset({"plain", "logfire", "langfuse", "langsmith", "mlflow"})
"""Dialects in which people wrap their functions in spans that do not say what they are."""


def add_traced(
    calls: list[FoundCall], tree: Tree, exchanges: Sequence[Exchange], agents: Agents
) -> None:
    """A function that a decorator traced is a tool's execution when a model asked for it, or was told its result."""
    traced = [f for f in tree.order if f.tool_name and f.kind == "other"]
    if not traced:
        return
    names = {call.name for call in calls} | _told_results(traced, exchanges)
    around = {a.span.span_id for c in calls if c.facts for a in tree.ancestors(c.facts)}
    for facts in traced:
        if facts.tool_name not in names or facts.span.span_id in around:
            continue
        if any(ancestor.kind == "tool" for ancestor in tree.ancestors(facts)):
            continue
        found = call_of_span(facts, agents)
        asked = next((call for call in calls if _is_execution(found, call)), None)
        if asked is None:
            calls.append(found)
        else:
            asked.merge(facts)
            asked.execute(facts)


def _told_results(traced: Sequence[Facts], exchanges: Sequence[Exchange]) -> set[str | None]:
    """The functions that gave what a model was told as a tool's result."""
    results = [r for e in exchanges for m in e.messages_in for r in m.results]
    told = {r.content for r in results if isinstance(r.content, str) and r.content}
    return {f.tool_name for f in traced if isinstance(f.result, str) and f.result in told}


def _is_execution(found: FoundCall, call: FoundCall) -> bool:
    if call.facts is not None or call.name != found.name or call.start > found.start:
        return False
    return found.arguments is None or found.arguments == call.arguments


def add_hand_written(calls: Sequence[FoundCall], tree: Tree) -> None:
    """A plain span that says a requested tool's name is its execution: status, times and outcome are known from it."""
    open_calls = [call for call in calls if call.facts is None]
    if not open_calls:
        return
    plain = [f for f in tree.order if f.dialect in _UNMARKED and f.kind == "other"]
    for call in sorted(open_calls, key=lambda c: c.start):
        found = [
            f
            for f in plain
            if f.span.start_time_unix_nano >= call.start and _mentions(f, call.name)
        ]
        if not found:
            continue
        facts = next((f for f in found if _gave(f, call)), found[0])
        plain.remove(facts)
        _execute(call, facts)


def _gave(facts: Facts, call: FoundCall) -> bool:
    """Whether the span took the call's arguments: of parallel calls each has its own."""
    return facts.input is not None and arguments_of(facts.input.raw) == call.arguments


def _execute(call: FoundCall, facts: Facts) -> None:
    call.execute(facts)
    outcome = outcome_of(facts.output.raw) if facts.output is not None else None
    if outcome is not None:
        call.result = outcome.result if call.result is None else call.result
        if outcome.is_error:
            call.error = call.error or error_text(outcome.result)
    call.error = call.error or span_error(facts)


def _mentions(facts: Facts, name: str) -> bool:
    span = facts.span
    if facts.dialect in ("langfuse", "langsmith"):
        return span.name == name
    if facts.dialect == "mlflow":
        return span.name == name or plain_name(span.name) == name
    if name in re.split(r"[^\w\-]+", span.name):
        return True
    return any(span.attributes.get(key) == name for key in span.attributes)
