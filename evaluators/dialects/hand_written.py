"""Executions of tools in spans that do not say what they are, because people wrapped their functions by hand."""

from __future__ import annotations

import re

from evaluators.dialects.facts import Facts
from evaluators.dialects.found_call import FoundCall, span_error
from evaluators.dialects.mlflow import plain_name
from evaluators.dialects.tool_values import arguments_of, outcome_of
from evaluators.dialects.tree import Tree
from evaluators.dialects.values import text_of

_UNMARKED = ("plain", "logfire", "langfuse", "langsmith", "mlflow")
"""Dialects in which people wrap their functions in spans that do not say what they are."""


def add_hand_written(calls: list[FoundCall], tree: Tree) -> None:
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
    span = facts.span
    call.facts, call.start = facts, span.start_time_unix_nano
    call.end = span.end_time_unix_nano
    outcome = outcome_of(facts.output.raw) if facts.output is not None else None
    if outcome is not None:
        call.result = outcome.result if call.result is None else call.result
        if outcome.is_error:
            call.error = call.error or text_of(outcome.result) or "error"
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
