"""Tool calls that no model's answer holds, though the conversation of a step does.

Some instrumentations record a model's answer without the calls in it, or no model call at all, but the state of the
graph around it: OpenLLMetry for JS does so for LangChain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaluators.dialects.content.facts import Facts
from evaluators.dialects.content.message_model import Call, Result, this_turn
from evaluators.dialects.joining.agents import Agents
from evaluators.dialects.joining.calls_in_answers import requested
from evaluators.dialects.joining.model_calls import Exchange
from evaluators.dialects.joining.tool_call import DraftCall
from evaluators.dialects.joining.tree import Tree
from evaluators.model import Span

_HINTS = ("tool_calls", "toolCalls", "tool_call_id")
_CLASSES = frozenset({"DynamicStructuredTool", "DynamicTool", "StructuredTool"})
"""LangChain's classes of tools, by which some instrumentations name every tool."""


def add_calls_in_states(
    calls: list[DraftCall], tree: Tree, exchanges: Sequence[Exchange], agents: Agents
) -> None:
    """Join the calls that only a step's conversation holds; a span named for its tool's class gets the tool's name."""
    steps = [f for f in tree.order if f.output is not None and f.kind in ("agent", "other")]
    if not steps or not _lack_answers(exchanges):
        return
    states = [f for f in steps if f.output is not None and f.output.may_mention(_HINTS)]
    for stated, result, span in _calls_in(states):
        draft = next((call for call in calls if _is_same(call, stated)), None)
        if draft is None:
            draft = DraftCall(name=stated.name, start=span.start_time_unix_nano)
            draft.agent = agents.names[0] if len(agents.names) == 1 else None
            calls.append(draft)
        draft.name, draft.id = stated.name, stated.id
        if not isinstance(draft.arguments, dict):
            draft.arguments = stated.arguments
        if result is not None and draft.result is None:
            draft.take(result)


def name_classes(calls: Sequence[DraftCall], exchanges: Sequence[Exchange]) -> None:
    """Rename a span that is named for its tool's class: it is the tool that was requested with its arguments."""
    classes = [call for call in calls if call.name in _CLASSES]
    in_answers = [call for call, _ in requested(exchanges)] if classes else []
    for call in classes:
        same = (r for r in in_answers if not (call.id and r.id and call.id != r.id))
        request = next((r for r in same if call.same_arguments(r)), None)
        call.name = request.name if request is not None else call.name


def _is_same(call: DraftCall, stated: Call) -> bool:
    if call.id is not None:
        return call.id == stated.id
    same_name = call.name == stated.name or call.name in _CLASSES
    return same_name and call.same_arguments(stated)


def _lack_answers(exchanges: Sequence[Exchange]) -> bool:
    """Whether an answer was recorded without text and calls, or no model call at all."""
    return not exchanges or any(map(_is_empty, exchanges))


def _is_empty(exchange: Exchange) -> bool:
    messages = exchange.messages_out
    for message in messages:
        if message.text or message.calls:
            return False
    return bool(messages) and exchange.error is None


def _calls_in(states: Sequence[Facts]) -> Iterator[tuple[Call, Result | None, Span]]:
    """Each call of this turn once, by its id, with its result and the first span whose output has it."""
    calls: dict[str, tuple[Call, Span]] = {}
    results: dict[str, Result] = {}
    for facts in states:
        for message in this_turn(facts.messages_out):
            for call in message.calls:
                if call.id is not None:
                    calls.setdefault(call.id, (call, facts.span))
            for result in message.results:
                if result.id is not None:
                    results.setdefault(result.id, result)
    for key, (call, span) in calls.items():
        yield call, results.get(key), span
