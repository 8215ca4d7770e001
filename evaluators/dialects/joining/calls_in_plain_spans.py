"""Executions of tools in spans without a kind, because people wrapped their functions by hand."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evaluators.dialects.content.facts import Facts
from evaluators.dialects.content.tool_values import arguments_of, outcome_of
from evaluators.dialects.joining.agents import Agents
from evaluators.dialects.joining.model_calls import Exchange
from evaluators.dialects.joining.tool_call import DraftCall, call_of_span, error_text, span_error
from evaluators.dialects.joining.tree import Tree


def add_traced(
    calls: list[DraftCall], tree: Tree, exchanges: Sequence[Exchange], agents: Agents
) -> None:
    """Add the functions that a decorator traced, where a model asked for them or was sent their result."""
    traced = [f for f in tree.order if f.tool_name and f.kind == "other"]
    if not traced:
        return
    names = {call.name for call in calls} | _answering(traced, exchanges)
    around = {a.span.span_id for c in calls if c.facts for a in tree.ancestors(c.facts)}
    for facts in traced:
        if facts.tool_name not in names or facts.span.span_id in around:
            continue
        if any(ancestor.kind == "tool" for ancestor in tree.ancestors(facts)):
            continue
        executed = call_of_span(facts, agents)
        requested = next((call for call in calls if _is_execution(executed, call)), None)
        if requested is None:
            calls.append(executed)
        else:
            requested.merge(facts)
            requested.execute(facts)


def _answering(traced: Sequence[Facts], exchanges: Sequence[Exchange]) -> set[str | None]:
    """The names of the functions whose result a model was sent as a tool's."""
    results = [r for e in exchanges for m in e.messages_in for r in m.results]
    contents = {r.content for r in results if isinstance(r.content, str) and r.content}
    return {f.tool_name for f in traced if isinstance(f.result, str) and f.result in contents}


def _is_execution(executed: DraftCall, call: DraftCall) -> bool:
    if call.facts is not None or call.name != executed.name or call.start > executed.start:
        return False
    return executed.arguments is None or executed.arguments == call.arguments


def add_hand_written(calls: Sequence[DraftCall], tree: Tree) -> None:
    """Take status, times and result of a requested tool from the span without a kind that names it."""
    open_calls = [call for call in calls if call.facts is None]
    if not open_calls:
        return
    spans = [f for f in tree.order if f.wraps is not None and f.kind == "other"]
    for call in sorted(open_calls, key=lambda c: c.start):
        later = (f for f in spans if f.span.start_time_unix_nano >= call.start)
        named = [f for f in later if _names(f, call.name)]
        if not named:
            continue
        facts = next((f for f in named if _has_arguments(f, call)), named[0])
        spans.remove(facts)
        _execute(call, facts)


def _has_arguments(facts: Facts, call: DraftCall) -> bool:
    """Whether the span took the call's arguments: each of several parallel calls has its own."""
    return facts.input is not None and arguments_of(facts.input.raw) == call.arguments


def _execute(call: DraftCall, facts: Facts) -> None:
    call.execute(facts)
    outcome = outcome_of(facts.output.raw) if facts.output is not None else None
    if outcome is not None:
        call.result = outcome.result if call.result is None else call.result
        if outcome.is_error:
            call.error = call.error or error_text(outcome.result)
    call.error = call.error or span_error(facts)


def _names(facts: Facts, tool: str) -> bool:
    span = facts.span
    if facts.wraps == "name":
        return tool in (span.name, facts.plain_name)
    if tool in re.split(r"[^\w\-]+", span.name):
        return True
    return any(span.attributes.get(key) == tool for key in span.attributes)
