"""The tool calls of a trace: those that left a span, and those only seen in messages, each once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from evaluators.dialects.agents import Agents
from evaluators.dialects.facts import Facts
from evaluators.dialects.found_call import FoundCall, span_error
from evaluators.dialects.hand_written import add_hand_written
from evaluators.dialects.kernel import function_name, speaks_kernel
from evaluators.dialects.limits import cap, cap_json
from evaluators.dialects.model_calls import Exchange
from evaluators.dialects.parts import Call, Message, Result
from evaluators.dialects.tree import Tree
from evaluators.dialects.values import as_dict, text_of
from evaluators.model import ToolCall

PSEUDO = frozenset({"final_answer", "finish", "final_result", "(merged tools)"})
"""How smolagents, dspy and pydantic-ai let a model say its answer, and how ADK sums up parallel calls: no tools."""
_HANDOFF = re.compile(r"(?:transfer|hand_?off|delegate)(?:_back|_work)?_to_?_?(.*)", re.IGNORECASE)


def find_tool_calls(
    tree: Tree, exchanges: Sequence[Exchange], agents: Agents
) -> tuple[ToolCall, ...]:
    """Every call in order of start; one only seen in messages stands at the end of the model call that asked for it."""
    calls = _from_spans(tree, agents)
    kernel = speaks_kernel(tree.order)
    if kernel:
        for call in calls:
            call.name = function_name(call.name)
    _add_requested(calls, exchanges, agents, kernel=kernel)
    _add_results(calls, exchanges)
    add_hand_written(calls, tree)
    kept = [c for c in calls if c.name not in PSEUDO and not _is_handoff(c, agents)]
    kept.sort(key=lambda c: (c.start, c.facts is None, c.facts.span.span_id if c.facts else ""))
    return tuple(_finish(call) for call in kept)


# --- spans -----------------------------------------------------------------------------------------------------------


def _from_spans(tree: Tree, agents: Agents) -> list[FoundCall]:
    found: dict[str, FoundCall] = {}
    for facts in tree.order:
        if facts.kind != "tool" or not (facts.tool_name or facts.tool_id):
            continue
        outer = _same_call_around(tree, facts, found)
        if outer is not None:
            _merge(outer, facts)
            found[facts.span.span_id] = outer
        elif facts.tool_name:
            found[facts.span.span_id] = _of_span(facts, agents)
    return list({id(call): call for call in found.values()}.values())


def _of_span(facts: Facts, agents: Agents) -> FoundCall:
    span = facts.span
    return FoundCall(
        name=facts.tool_name or "",
        id=facts.tool_id,
        arguments=facts.arguments,
        result=facts.result,
        error=span_error(facts),
        agent=agents.of(facts),
        facts=facts,
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
    )


def _merge(call: FoundCall, facts: Facts) -> None:
    """Take from a span what the call lacks."""
    call.id = call.id or facts.tool_id
    if call.arguments is None:
        call.arguments = facts.arguments
    if call.result is None:
        call.result = facts.result
    call.error = call.error or span_error(facts)


def _same_call_around(tree: Tree, facts: Facts, found: dict[str, FoundCall]) -> FoundCall | None:
    """The call this span records a second time: a tool span of the same name (and id) right around it."""
    parent = tree.parent(facts)
    if parent is None or parent.kind in ("llm", "agent"):
        return None
    for ancestor in tree.ancestors(facts):
        if ancestor.kind in ("llm", "agent"):
            return None
        if ancestor.kind == "tool":
            call = found.get(ancestor.span.span_id)
            if call is None or (facts.tool_name or call.name) != call.name:
                return None
            if not facts.tool_name and call.id != facts.tool_id:
                return None
            differs = call.id and facts.tool_id and call.id != facts.tool_id
            return None if differs else call
    return None


# --- messages --------------------------------------------------------------------------------------------------------


def _add_requested(
    calls: list[FoundCall], exchanges: Sequence[Exchange], agents: Agents, *, kernel: bool
) -> None:
    """Join the calls that models asked for: by id, then by name and arguments, then by name, each in order of time."""
    seen: set[str] = set()
    pending: list[tuple[Call, Exchange]] = []
    for call, exchange in _requested(exchanges):
        if call.id is not None:
            if call.id in seen:
                continue
            seen.add(call.id)
        named = msgspec.structs.replace(call, name=function_name(call.name)) if kernel else call
        pending.append((named, exchange))
    pending = _without_known_ids(calls, pending)
    for matches in (_by_arguments, _by_name):
        pending = [(c, e) for c, e in pending if not _join(calls, c, e, matches)]
    for call, exchange in pending:
        calls.append(_only_requested(call, exchange, agents))


def _requested(exchanges: Sequence[Exchange]) -> Iterable[tuple[Call, Exchange]]:
    """Calls in the answers. Where an answer was not exported, those of the turn's history that no answer holds."""
    silent = False
    for exchange in exchanges:
        messages = exchange.messages_out
        silent = silent or not (messages or exchange.text)
        for message in messages:
            for call in message.calls:
                yield call, exchange
    if silent:
        yield from _from_history(exchanges)


def _from_history(exchanges: Sequence[Exchange]) -> Iterable[tuple[Call, Exchange]]:
    answered = [call for e in exchanges for m in e.messages_out for call in m.calls]
    known = {call.id for call in answered}
    nameless = [call for call in answered if call.id is None]
    before: Exchange | None = None
    for exchange in exchanges:
        for message in this_turn(exchange.messages_in) if before is not None else ():
            for call in message.calls:
                if call.id is None or call.id in known:
                    continue
                known.add(call.id)
                if not _strike(nameless, call):
                    yield call, before or exchange
        before = exchange


def _strike(nameless: list[Call], call: Call) -> bool:
    """Whether an answer held this call without its id, as streamed ones do; each answers for one."""
    for index, other in enumerate(nameless):
        if (other.name, other.arguments) == (call.name, call.arguments):
            del nameless[index]
            return True
    return False


def this_turn(messages: Sequence[Message]) -> Sequence[Message]:
    """What follows the user's last words: former turns are repeated in every request and must not count again."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "user":
            return messages[index + 1 :]
    return messages


def _without_known_ids(
    calls: list[FoundCall], pending: list[tuple[Call, Exchange]]
) -> list[tuple[Call, Exchange]]:
    """Join the calls that have the same id; what is left could not be joined so."""
    by_id: dict[str, list[FoundCall]] = {}
    for call in calls:
        if isinstance(call.id, str):
            by_id.setdefault(call.id, []).append(call)
    left: list[tuple[Call, Exchange]] = []
    for wanted, exchange in pending:
        same = by_id.get(wanted.id, []) if wanted.id is not None else []
        if not _join(same, wanted, exchange, _any):
            left.append((wanted, exchange))
    return left


def _any(_call: FoundCall, _wanted: Call) -> bool:
    return True


def _by_arguments(call: FoundCall, wanted: Call) -> bool:
    return call.name == wanted.name and call.same_arguments(wanted)


def _by_name(call: FoundCall, wanted: Call) -> bool:
    """Same name: the same call unless both know better, by different ids."""
    return call.name == wanted.name and not (call.id and wanted.id and call.id != wanted.id)


def _join(
    calls: list[FoundCall],
    wanted: Call,
    exchange: Exchange,
    matches: Callable[[FoundCall, Call], bool],
) -> bool:
    for call in calls:
        if call.requested or (call.end and call.end < exchange.start):
            continue
        if matches(call, wanted):
            call.requested = True
            call.id = call.id or wanted.id
            if not isinstance(call.arguments, dict) and wanted.arguments is not None:
                call.arguments = (
                    wanted.arguments
                )  # LangChain shows a single argument as its bare text
            return True
    return False


def _only_requested(call: Call, exchange: Exchange, agents: Agents) -> FoundCall:
    return FoundCall(
        name=call.name,
        id=call.id,
        arguments=call.arguments,
        agent=agents.of_first(exchange.layers),
        requested=True,
        start=exchange.end,
    )


def _add_results(calls: list[FoundCall], exchanges: Sequence[Exchange]) -> None:
    """What later messages say a call gave, where its span does not. Histories repeat: the last is looked at first."""
    nameless = [call for call in calls if call.result is None and not call.id]
    if nameless:
        _identify(nameless, calls, exchanges)
        _add_nameless([call for call in nameless if not call.id], exchanges)
    wanted = {call.id: call for call in calls if call.result is None and call.id}
    for exchange in reversed(exchanges):
        if not wanted:
            return
        if not exchange.may_mention(wanted):
            continue
        for message in exchange.messages_in:
            for result in message.results:
                if result.id in wanted:
                    _apply(wanted.pop(result.id), result)


def _identify(
    nameless: Sequence[FoundCall], calls: Sequence[FoundCall], exchanges: Sequence[Exchange]
) -> None:
    """Some answers lose the ids of their calls (streams, logfire's Anthropic): later requests still have them."""
    known = {call.id for call in calls}
    for exchange in exchanges[1:]:
        for message in this_turn(exchange.messages_in):
            for call in message.calls:
                if call.id is None or call.id in known:
                    continue
                known.add(call.id)
                same = (c for c in nameless if not c.id and c.name == call.name)
                found = next((c for c in same if c.same_arguments(call)), None)
                if found is not None:
                    found.id = call.id


def _add_nameless(calls: list[FoundCall], exchanges: Sequence[Exchange]) -> None:
    """Calls without an id take the results without an id, by the tool's name, in order."""
    results: list[Result] = []
    for exchange in exchanges:
        found = [r for m in exchange.messages_in for r in m.results if r.id is None]
        results += [result for result in found if result not in results]
    for call in calls:
        result = _take(results, call.name)
        if result is not None:
            _apply(call, result)


def _take(results: list[Result], name: str) -> Result | None:
    for index, result in enumerate(results):
        if result.name == name:
            return results.pop(index)
    return None


def _apply(call: FoundCall, result: Result) -> None:
    call.result = result.content
    if result.is_error and call.error is None:
        call.error = text_of(result.content) or "error"


# --- hand-overs ------------------------------------------------------------------------------------------------------


def _is_handoff(call: FoundCall, agents: Agents) -> bool:
    """A hand-over to another agent of this trace. A tool merely called so (`transfer_to_human`) stays a tool."""
    match = _HANDOFF.fullmatch(call.name)
    if match is None:
        return False
    known = {_letters(name) for name in agents.names}
    target = _letters(match.group(1))
    if target in known:
        return True
    named = [_letters(str(value)) for value in as_dict(call.arguments).values()]
    return target in ("agent", "") and any(name in known for name in named)


def _letters(name: str) -> str:
    return re.sub(r"\W|_", "", name).lower()


def _finish(call: FoundCall) -> ToolCall:
    return ToolCall(
        name=call.name,
        id=call.id,
        arguments=cap_json(call.arguments),
        result=cap_json(call.result),
        error=cap(call.error),
        agent=call.agent,
        span_id=call.facts.span.span_id if call.facts is not None else None,
        start_time_unix_nano=call.start,
        end_time_unix_nano=call.end or call.start,
    )
