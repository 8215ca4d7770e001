"""Tool calls that no model's answer holds, though a step's conversation does.

Some instrumentations record a model's answer without the calls in it, or no model call at all, but the state of the
graph around it: LangChain's as OpenLLMetry for JS writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaluators.dialects.facts import Facts
from evaluators.dialects.model_calls import Exchange
from evaluators.dialects.parts import Call, Message, Result
from evaluators.dialects.tree import Tree
from evaluators.model import Span

_HINTS = ("tool_calls", "toolCalls", "tool_call_id")


def are_hollow(exchanges: Sequence[Exchange]) -> bool:
    """Whether an answer was recorded that says nothing and asks for nothing, or no model call at all."""
    return not exchanges or any(map(_is_hollow, exchanges))


def _is_hollow(exchange: Exchange) -> bool:
    messages = exchange.messages_out
    for message in messages:
        if message.text or message.calls:
            return False
    return bool(messages) and exchange.error is None


def tellers(tree: Tree) -> list[Facts]:
    """The steps whose output can tell of a call, in order of start; found without parsing."""
    return [
        facts
        for facts in tree.order
        if facts.output is not None
        and facts.kind in ("agent", "other")
        and facts.output.may_mention(_HINTS)
    ]


def calls_told(steps: Sequence[Facts]) -> Iterator[tuple[Call, Result | None, Span]]:
    """Each call of this turn once, by its id, with what came of it and the span whose output tells it first."""
    calls: dict[str, tuple[Call, Span]] = {}
    results: dict[str, Result] = {}
    for facts in steps:
        for message in _this_turn(facts.messages_out):
            for call in message.calls:
                if call.id is not None:
                    calls.setdefault(call.id, (call, facts.span))
            for result in message.results:
                if result.id is not None:
                    results.setdefault(result.id, result)
    for key, (call, span) in calls.items():
        yield call, results.get(key), span


def _this_turn(messages: Sequence[Message]) -> Sequence[Message]:
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "user":
            return messages[index + 1 :]
    return messages
