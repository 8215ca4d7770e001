"""The tool calls of a trace: those that left a span, and those only seen in messages, each once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from evaluators.dialects.agents import Agents
from evaluators.dialects.errors import error_of
from evaluators.dialects.facts import Facts
from evaluators.dialects.kernel import function_name, speaks_kernel
from evaluators.dialects.limits import cap, cap_json
from evaluators.dialects.model_calls import Exchange
from evaluators.dialects.parts import Call, Message, Result
from evaluators.dialects.told import are_hollow, calls_told, tellers
from evaluators.dialects.tree import Tree
from evaluators.dialects.values import as_dict, text_of
from evaluators.model import JSON, Span, ToolCall

PSEUDO = frozenset({"final_answer", "finish", "final_result", "(merged tools)"})
"""How smolagents, dspy and pydantic-ai let a model say its answer, and how ADK sums up parallel calls: no tools."""
_HANDOFF = re.compile(r"(?:transfer|hand_?off|delegate)(?:_back|_work)?_to_?_?(.*)", re.IGNORECASE)


class _Found(msgspec.Struct, eq=False):
    """One call while it is put together."""

    name: str
    id: str | None = None
    arguments: JSON = None
    result: JSON = None
    error: str | None = None
    agent: str | None = None
    facts: Facts | None = None
    requested: bool = False
    end: int = 0
    start: int = 0

    def same_arguments(self, call: Call) -> bool:
        """Whether both ask for the same: an absent object and an empty one are."""
        return (self.arguments or {}) == (call.arguments or {})


def find_tool_calls(
    tree: Tree, exchanges: Sequence[Exchange], agents: Agents
) -> tuple[ToolCall, ...]:
    """Every call in order of start; one only seen in messages stands at the end of the model call that asked for it."""
    calls = _from_spans(tree, agents)
    kernel = speaks_kernel(tree.order)
    if kernel:
        for call in calls:
            call.name = function_name(call.name)
    if (steps := tellers(tree)) and are_hollow(exchanges):
        _add_told(calls, steps, agents)
    _name_classes(calls, exchanges)
    _add_requested(calls, exchanges, agents, kernel=kernel)
    _add_results(calls, exchanges)
    _add_hand_written(calls, tree)
    _mark_failed(calls)
    kept = [c for c in calls if c.name not in PSEUDO and not _is_handoff(c, agents)]
    kept.sort(key=lambda c: (c.start, c.facts is None, c.facts.span.span_id if c.facts else ""))
    return tuple(_finish(call) for call in kept)


# --- spans -----------------------------------------------------------------------------------------------------------


def _from_spans(tree: Tree, agents: Agents) -> list[_Found]:
    found: dict[str, _Found] = {}
    for facts in tree.order:
        if facts.kind != "tool" or not facts.tool_name:
            continue
        outer = _same_call_around(tree, facts, found)
        if outer is not None:
            _merge(outer, facts)
            found[facts.span.span_id] = outer
        else:
            found[facts.span.span_id] = _of_span(facts, agents)
    return list({id(call): call for call in found.values()}.values())


def _of_span(facts: Facts, agents: Agents) -> _Found:
    span = facts.span
    return _Found(
        name=facts.tool_name or "",
        id=facts.tool_id,
        arguments=facts.arguments,
        result=facts.result,
        error=_span_error(facts),
        agent=agents.of(facts),
        facts=facts,
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
    )


def _merge(call: _Found, facts: Facts) -> None:
    """Take from a span what the call lacks."""
    call.id = call.id or facts.tool_id
    if call.arguments is None:
        call.arguments = facts.arguments
    if call.result is None:
        call.result = facts.result
    call.error = call.error or _span_error(facts)


def _span_error(facts: Facts) -> str | None:
    error = error_of(facts.span)
    if error is None and facts.tool_error is None:
        return None
    if error is None or error == "error":
        said = facts.tool_error if facts.tool_error != "error" else None
        return said or text_of(facts.result) or "error"
    return error


def _same_call_around(tree: Tree, facts: Facts, found: dict[str, _Found]) -> _Found | None:
    """The call this span records a second time: a tool span of the same name (and id) right around it."""
    parent = tree.parent(facts)
    if parent is None or parent.kind in ("llm", "agent"):
        return None
    for ancestor in tree.ancestors(facts):
        if ancestor.kind in ("llm", "agent"):
            return None
        if ancestor.kind == "tool":
            call = found.get(ancestor.span.span_id)
            if call is None or call.name != facts.tool_name:
                return None
            differs = call.id and facts.tool_id and call.id != facts.tool_id
            return None if differs else call
    return None


# --- conversations of steps -----------------------------------------------------------------------------------------


_CLASSES = frozenset({"DynamicStructuredTool", "DynamicTool", "StructuredTool"})
"""LangChain's classes of tools, by which some instrumentations name every tool."""


def _add_told(calls: list[_Found], steps: Sequence[Facts], agents: Agents) -> None:
    """Join the calls that only a step's conversation tells; a span that says its tool's class learns its name."""
    for told, result, span in calls_told(steps):
        found = next((call for call in calls if _is_told(call, told)), None)
        if found is None:
            found = _Found(name=told.name, start=span.start_time_unix_nano)
            found.agent = agents.names[0] if len(agents.names) == 1 else None
            calls.append(found)
        found.name, found.id = told.name, told.id
        if not isinstance(found.arguments, dict):
            found.arguments = told.arguments
        if result is not None and found.result is None:
            _apply(found, result)


def _name_classes(calls: list[_Found], exchanges: Sequence[Exchange]) -> None:
    """A span that says its tool's class is the tool that was asked for with its arguments."""
    for call in calls:
        if call.name in _CLASSES:
            same = (c for c, _ in _requested(exchanges) if c.id in (call.id, None) or not call.id)
            asked = next((wanted for wanted in same if call.same_arguments(wanted)), None)
            call.name = asked.name if asked is not None else call.name


def _is_told(call: _Found, told: Call) -> bool:
    if call.id is not None:
        return call.id == told.id
    same_name = call.name == told.name or call.name in _CLASSES
    return same_name and call.same_arguments(told)


# --- messages --------------------------------------------------------------------------------------------------------


def _add_requested(
    calls: list[_Found], exchanges: Sequence[Exchange], agents: Agents, *, kernel: bool
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
        said = False
        for message in exchange.messages_out:
            said = said or bool(message.text or message.calls)
            for call in message.calls:
                yield call, exchange
        silent = silent or not said
    if silent:
        yield from _from_history(exchanges)


def _from_history(exchanges: Sequence[Exchange]) -> Iterable[tuple[Call, Exchange]]:
    known = {call.id for e in exchanges for m in e.messages_out for call in m.calls}
    before: Exchange | None = None
    for exchange in exchanges:
        for message in this_turn(exchange.messages_in) if before is not None else ():
            for call in message.calls:
                if call.id is not None and call.id not in known:
                    known.add(call.id)
                    yield call, before or exchange
        before = exchange


def this_turn(messages: Sequence[Message]) -> Sequence[Message]:
    """What follows the user's last words: former turns are repeated in every request and must not count again."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "user":
            return messages[index + 1 :]
    return messages


def _without_known_ids(
    calls: list[_Found], pending: list[tuple[Call, Exchange]]
) -> list[tuple[Call, Exchange]]:
    """Join the calls that have the same id; what is left could not be joined so."""
    by_id: dict[str, list[_Found]] = {}
    for call in calls:
        if isinstance(call.id, str):
            by_id.setdefault(call.id, []).append(call)
    left: list[tuple[Call, Exchange]] = []
    for wanted, exchange in pending:
        same = by_id.get(wanted.id, []) if wanted.id is not None else []
        if not _join(same, wanted, exchange, _any):
            left.append((wanted, exchange))
    return left


def _any(_call: _Found, _wanted: Call) -> bool:
    return True


def _by_arguments(call: _Found, wanted: Call) -> bool:
    return call.name == wanted.name and call.same_arguments(wanted)


def _by_name(call: _Found, wanted: Call) -> bool:
    """Same name: the same call unless both know better, by different ids."""
    return call.name == wanted.name and not (call.id and wanted.id and call.id != wanted.id)


def _join(
    calls: list[_Found], wanted: Call, exchange: Exchange, matches: Callable[[_Found, Call], bool]
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


def _only_requested(call: Call, exchange: Exchange, agents: Agents) -> _Found:
    return _Found(
        name=call.name,
        id=call.id,
        arguments=call.arguments,
        agent=agents.of_first(exchange.layers),
        requested=True,
        start=exchange.end,
    )


def _add_results(calls: list[_Found], exchanges: Sequence[Exchange]) -> None:
    """What later messages say a call gave, where its span does not. Histories repeat: the last is looked at first."""
    wanted = {call.id: call for call in calls if call.result is None and call.id}
    nameless = [call for call in calls if call.result is None and not call.id]
    if nameless:
        _add_nameless(nameless, exchanges)
    for exchange in reversed(exchanges):
        if not wanted:
            return
        if not exchange.may_mention(wanted):
            continue
        for message in exchange.messages_in:
            for result in message.results:
                if result.id in wanted:
                    _apply(wanted.pop(result.id), result)


def _add_nameless(calls: list[_Found], exchanges: Sequence[Exchange]) -> None:
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


def _apply(call: _Found, result: Result) -> None:
    call.result = result.content
    if result.is_error and call.error is None:
        call.error = text_of(result.content) or "error"


def _mark_failed(calls: list[_Found]) -> None:
    """A call without a span has no status: that it failed is known from what the model was told, `Error: ...`."""
    for call in calls:
        told = call.result
        if call.facts is None and call.error is None and isinstance(told, str):
            call.error = told if told.startswith("Error: ") else None


# --- spans that no instrumentation marked --------------------------------------------------------------------------


def _add_hand_written(calls: list[_Found], tree: Tree) -> None:
    """A plain span that says a requested tool's name is its execution: status and times are known from it."""
    open_calls = [call for call in calls if call.facts is None]
    if not open_calls:
        return
    plain = [f for f in tree.order if f.dialect in ("plain", "logfire") and f.kind == "other"]
    for call in sorted(open_calls, key=lambda c: c.start):
        for facts in plain:
            span = facts.span
            if span.start_time_unix_nano >= call.start and _mentions(span, call.name):
                plain.remove(facts)
                call.facts, call.start = facts, span.start_time_unix_nano
                call.end = span.end_time_unix_nano
                call.error = call.error or error_of(span)
                break


def _mentions(span: Span, name: str) -> bool:
    if name in re.split(r"[^\w\-]+", span.name):
        return True
    return any(span.attributes.get(key) == name for key in span.attributes)


# --- hand-overs ------------------------------------------------------------------------------------------------------


def _is_handoff(call: _Found, agents: Agents) -> bool:
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


def _finish(call: _Found) -> ToolCall:
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
