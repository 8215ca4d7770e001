"""Tool calls that no model's answer holds, though a step's conversation does.

Some instrumentations record a model's answer without the calls in it, or no model call at all, but the state of the
graph around it: LangChain's as OpenLLMetry for JS writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaluators.dialects.content.facts import Facts
from evaluators.dialects.content.message_model import Call, Result, this_turn
from evaluators.dialects.joining.agents import Agents
from evaluators.dialects.joining.calls_in_answers import requested
from evaluators.dialects.joining.model_calls import Exchange
from evaluators.dialects.joining.tool_call import FoundCall
from evaluators.dialects.joining.tree import Tree
from evaluators.model import Span

_HINTS = ("tool_calls", "toolCalls", "tool_call_id")
_CLASSES = frozenset({"DynamicStructuredTool", "DynamicTool", "StructuredTool"})
"""LangChain's classes of tools, by which some instrumentations name every tool."""


def add_told(
    calls: list[FoundCall], tree: Tree, exchanges: Sequence[Exchange], agents: Agents
) -> None:
    """Join the calls that only a step's conversation tells; a span that says its tool's class learns its name."""
    steps = [f for f in tree.order if f.output is not None and f.kind in ("agent", "other")]
    if not steps or not _are_hollow(exchanges):
        return
    tellers = [f for f in steps if f.output is not None and f.output.may_mention(_HINTS)]
    for told, result, span in _calls_told(tellers):
        found = next((call for call in calls if _is_told(call, told)), None)
        if found is None:
            found = FoundCall(name=told.name, start=span.start_time_unix_nano)
            found.agent = agents.names[0] if len(agents.names) == 1 else None
            calls.append(found)
        found.name, found.id = told.name, told.id
        if not isinstance(found.arguments, dict):
            found.arguments = told.arguments
        if result is not None and found.result is None:
            found.take(result)


def name_classes(calls: Sequence[FoundCall], exchanges: Sequence[Exchange]) -> None:
    """A span that says its tool's class is the tool that was asked for with its arguments."""
    classes = [call for call in calls if call.name in _CLASSES]
    wanted = [asked for asked, _ in requested(exchanges)] if classes else []
    for call in classes:
        same = (asked for asked in wanted if not (call.id and asked.id and call.id != asked.id))
        asked = next((asked for asked in same if call.same_arguments(asked)), None)
        call.name = asked.name if asked is not None else call.name


def _is_told(call: FoundCall, told: Call) -> bool:
    if call.id is not None:
        return call.id == told.id
    same_name = call.name == told.name or call.name in _CLASSES
    return same_name and call.same_arguments(told)


def _are_hollow(exchanges: Sequence[Exchange]) -> bool:
    """Whether an answer was recorded that says nothing and asks for nothing, or no model call at all."""
    return not exchanges or any(map(_is_hollow, exchanges))


def _is_hollow(exchange: Exchange) -> bool:
    messages = exchange.messages_out
    for message in messages:
        if message.text or message.calls:
            return False
    return bool(messages) and exchange.error is None


def _calls_told(steps: Sequence[Facts]) -> Iterator[tuple[Call, Result | None, Span]]:
    """Each call of this turn once, by its id, with what came of it and the span whose output tells it first."""
    calls: dict[str, tuple[Call, Span]] = {}
    results: dict[str, Result] = {}
    for facts in steps:
        for message in this_turn(facts.messages_out):
            for call in message.calls:
                if call.id is not None:
                    calls.setdefault(call.id, (call, facts.span))
            for result in message.results:
                if result.id is not None:
                    results.setdefault(result.id, result)
    for key, (call, span) in calls.items():
        yield call, results.get(key), span
