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
    _add_requested(calls, exchanges, agents, kernel=kernel)
    _add_results(calls, exchanges)
    _add_hand_written(calls, tree)
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
        messages = exchange.messages_out
        silent = silent or not messages
        for message in messages:
            for call in message.calls:
                yield call, exchange
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
    open_calls = [call for call in calls if call.result is None]
    if not open_calls:
        return
    wanted = {call.id: call for call in open_calls if call.id}
    for exchange in reversed(exchanges):
        if not wanted:
            break
        if exchange.may_mention(wanted):
            _apply_by_id(wanted, exchange.messages_in)
    for exchange in exchanges if wanted else ():
        _apply_by_id(wanted, exchange.messages_out)  # a whole run in one span
    _add_unnamed([call for call in open_calls if call.result is None], calls, exchanges)


def _apply_by_id(wanted: dict[str, _Found], messages: Sequence[Message]) -> None:
    """Give the calls their results, and take those that got one out of `wanted`."""
    for message in messages:
        for result in message.results:
            if result.id is not None and result.id in wanted:
                _apply(wanted.pop(result.id), result)


def _add_unnamed(
    open_calls: list[_Found], calls: list[_Found], exchanges: Sequence[Exchange]
) -> None:
    """Results whose call is not known by id answer the calls right before them: of the same name, else in order."""
    answers: list[tuple[Call, Result]] = []
    for exchange in exchanges if open_calls else ():
        found = [*_answers((*this_turn(exchange.messages_in), *exchange.messages_out))]
        if found[: len(answers)] == answers:
            answers = found
        else:
            answers += [answer for answer in found if answer not in answers]
    taken = {call.id for call in calls if call.id and call.result is not None}
    answers = [(c, r) for c, r in answers if c.id not in taken and r.id not in taken]
    for call in open_calls:
        for matches in (_same_id, _by_both, _by_name_alone):
            index = next((i for i, (c, _) in enumerate(answers) if matches(call, c)), None)
            if index is not None:
                _apply(call, answers.pop(index)[1])
                break


def _answers(messages: Sequence[Message]) -> Iterable[tuple[Call, Result]]:
    """Every result with the call it answers."""
    asked: list[Call] = []
    for message in messages:
        if message.calls:
            asked = list(message.calls)
        for result in message.results:
            call = _answered(asked, result)
            if call is not None:
                asked.remove(call)
                yield call, result
            elif result.name is not None:
                yield Call(name=result.name, id=result.id), result


def _answered(asked: list[Call], result: Result) -> Call | None:
    """The one with the result's id; a result without an id answers the first of its name."""
    if result.id is not None and any(call.id is not None for call in asked):
        return next((call for call in asked if call.id == result.id), None)
    return next((c for c in asked if result.name is None or c.name == result.name), None)


def _same_id(call: _Found, asked: Call) -> bool:
    return call.id is not None and call.id == asked.id


def _by_both(call: _Found, asked: Call) -> bool:
    return _by_name(call, asked) and call.same_arguments(asked)


def _by_name_alone(call: _Found, asked: Call) -> bool:
    """Same name, where arguments are not known on both sides: a result of other arguments is another call's."""
    return _by_name(call, asked) and (call.arguments is None or asked.arguments is None)


def _apply(call: _Found, result: Result) -> None:
    call.result = result.content
    if result.is_error and call.error is None:
        call.error = text_of(result.content) or "error"


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
