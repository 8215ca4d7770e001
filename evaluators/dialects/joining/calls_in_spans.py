"""Tool calls in spans that are not a tool's: functions wrapped by hand, and steps whose conversation holds the call.

Some instrumentations record a model's answer without the calls in it, or no model call at all, but the state of the
graph around it: OpenLLMetry for JS does so for LangChain.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import islice

from evaluators.dialects.content.facts import Facts
from evaluators.dialects.content.message_model import Call, Result, this_turn
from evaluators.dialects.content.outcomes import outcome_of
from evaluators.dialects.content.tools import arguments_of, passed_by_python
from evaluators.dialects.decoding.decode import names_of
from evaluators.dialects.joining.calls_in_messages import near, requested
from evaluators.dialects.joining.model_calls import Exchange
from evaluators.dialects.joining.tool_call import DraftCall, call_error, call_of_span, span_error
from evaluators.dialects.joining.tree import Agents, Tree
from evaluators.model import Span

_PARALLEL = 64  # spans named for a tool that may be one call of it


def add_traced(
    calls: list[DraftCall], tree: Tree, exchanges: Sequence[Exchange], agents: Agents
) -> None:
    traced = [f for f in tree.order if f.tool_name and f.kind == "other"]
    if not traced:
        return
    names = {call.name for call in calls} | _answering(traced, exchanges)
    asked: dict[str, list[DraftCall]] = {}
    for call in calls:
        if call.facts is None:
            asked.setdefault(call.name, []).append(call)
    around = {a.span.span_id for c in calls if c.facts for a in tree.ancestors(c.facts)}
    for facts in traced:
        if facts.tool_name not in names or facts.span.span_id in around:
            continue
        if any(ancestor.kind == "tool" for ancestor in tree.ancestors(facts)):
            continue
        executed = call_of_span(facts, agents)
        wanted = near(asked.get(executed.name, []))
        requested = next((call for call in wanted if _is_execution(executed, call)), None)
        if requested is None:
            calls.append(executed)
        else:
            asked[executed.name].remove(requested)
            requested.merge(facts)
            requested.execute(facts)


def _answering(traced: Sequence[Facts], exchanges: Sequence[Exchange]) -> set[str | None]:
    results = [r for e in exchanges for m in e.messages_in for r in m.results]
    contents = {r.content for r in results if isinstance(r.content, str) and r.content}
    return {f.tool_name for f in traced if isinstance(f.result, str) and f.result in contents}


def _is_execution(executed: DraftCall, call: DraftCall) -> bool:
    if call.start > executed.start:
        return False
    return executed.arguments is None or executed.arguments == call.arguments


def add_hand_written(calls: Sequence[DraftCall], tree: Tree) -> None:
    """Take status, times and result of a requested tool from the span without a kind that names it."""
    open_calls = [call for call in calls if call.facts is None]
    if not open_calls:
        return
    wanted = frozenset(call.name for call in open_calls)
    longest = max(map(len, wanted))
    spans: dict[str, deque[Facts]] = {}
    for facts in tree.order:
        if facts.wraps is not None and facts.kind == "other":
            for name in _named(facts, wanted, longest):
                spans.setdefault(name, deque()).append(facts)
    taken: set[str] = set()
    for call in sorted(open_calls, key=lambda c: c.start):
        free = spans.get(call.name, deque())
        # Calls are taken in order of start: what began before one is of no use to the next either.
        while free and (
            free[0].span.start_time_unix_nano < call.start or free[0].span.span_id in taken
        ):
            free.popleft()
        if not free:
            continue
        near = (f for f in islice(free, _PARALLEL) if f.span.span_id not in taken)
        facts = next((f for f in near if _has_arguments(f, call)), free[0])
        taken.add(facts.span.span_id)
        _execute(call, facts)


def _has_arguments(facts: Facts, call: DraftCall) -> bool:
    """Whether the span took the call's arguments: each of several parallel calls has its own."""
    if facts.input is None:
        return False
    taken = arguments_of(facts.input.raw)
    return taken == call.arguments or passed_by_python(taken) == call.arguments


def _execute(call: DraftCall, facts: Facts) -> None:
    call.execute(facts)
    if facts.output is not None:
        outcome = outcome_of(facts.output.raw, call.name, call.id)
        call.result = outcome.result if call.result is None else call.result
        call.error = call.error or call_error(outcome)
    call.error = call.error or span_error(facts)


_LONGEST = 256  # characters of a span's name whose words are remembered


def _named(facts: Facts, wanted: frozenset[str], longest: int) -> AbstractSet[str]:
    """Those of the tools that a span may mean; `longest`: the characters of the longest name, to look up no text."""
    span, attributes = facts.span, facts.span.attributes
    if facts.wraps == "name":
        return wanted & {span.name, facts.plain_name or span.name}
    found = {
        value
        for value in map(attributes.get, names_of(attributes))
        if isinstance(value, str) and len(value) <= longest and value in wanted
    }
    name = span.name
    words = _words(name) if len(name) <= _LONGEST else _words.__wrapped__(name)
    return found if words.isdisjoint(wanted) else found | (words & wanted)


@lru_cache(maxsize=512)
def _words(name: str) -> frozenset[str]:
    return frozenset(re.split(r"[^\w\-]+", name))


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
    by_id = {call.id: call for call in reversed(calls) if call.id is not None}
    nameless = [call for call in calls if call.id is None]
    for stated, result, span in _calls_in(states):
        draft = by_id.pop(stated.id or "", None)
        if draft is None:
            draft = next((call for call in near(nameless) if _is_same(call, stated)), None)
            if draft is not None:
                nameless.remove(draft)
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
    same_name = call.name == stated.name or call.name in _CLASSES
    return same_name and call.same_arguments(stated)


def _lack_answers(exchanges: Sequence[Exchange]) -> bool:
    """Whether an answer was recorded without text and calls, or no model call at all."""
    return not exchanges or any(map(_is_empty, exchanges))


def _is_empty(exchange: Exchange) -> bool:
    messages = exchange.messages_out
    said = any(message.text or message.calls for message in messages)
    return bool(messages) and not said and exchange.error is None


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
