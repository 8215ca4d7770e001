"""Tool calls and their results in messages, joined with the calls that left a span."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import TypeVar

import msgspec

from evaluators.dialects.content.message_model import Call, Message, Result, this_turn
from evaluators.dialects.decoding.room import search_short
from evaluators.dialects.decoding.values import as_dict, unwrap
from evaluators.dialects.joining.model_calls import Exchange
from evaluators.dialects.joining.tool_call import DraftCall, function_name
from evaluators.dialects.joining.tree import Agents, Tree

_T = TypeVar("_T")
_Pending = list[tuple[Call, Exchange]]
NEAR = 512
"""Free calls of one name, or results, that are looked at for one request: all would cost the square of their number."""


FEW = 16  # requests up to which comparing each with every call of its name costs less than grouping the calls


def near(candidates: Sequence[_T]) -> Iterator[_T]:
    """The first NEAR; who looks at all of them without success, though there are more, leaves the trace truncated."""
    yield from islice(candidates, NEAR)
    if len(candidates) > NEAR:
        search_short()


def add_calls_in_answers(
    calls: list[DraftCall], exchanges: Sequence[Exchange], agents: Agents, *, kernel: bool
) -> None:
    """Join the calls that models asked for: by id, by name and arguments, by the result that came back, then by name.

    Ids and arguments join whatever the clocks say: a tool's host may be behind the agent's. Time only orders the rest.
    """
    seen: set[str] = set()
    pending: _Pending = []
    for call, exchange in requested(exchanges):
        if call.id is not None:
            if call.id in seen:
                continue
            seen.add(call.id)
        named = msgspec.structs.replace(call, name=function_name(call.name)) if kernel else call
        pending.append((named, exchange))
    pending = _without_same_id(calls, pending)
    repeated = _repeated_requests(calls, pending)
    key = _name if len(pending) <= FEW else _name_and_arguments
    by_arguments = _grouped(calls, key) if pending else {}
    for timely in (True, False):
        pending = [
            (c, e)
            for c, e in pending
            if not (same := by_arguments.get(key(c)))
            or not _join(same, c, e, DraftCall.same_arguments, repeated.get(c.name), timely=timely)
        ]
    by_name = _grouped(calls, _name) if pending else {}
    by_result = _by_result(calls, pending, exchanges)
    ways = [(same_name, True)]
    if by_result is not None:
        ways = [(by_result, True), (by_result, False), *ways]
    for matches, timely in ways:
        pending = [
            (c, e)
            for c, e in pending
            if not (same := by_name.get(c.name))
            or not _join(same, c, e, matches, repeated.get(c.name), timely=timely)
        ]
    # A span that says a name alone, by a clock that is behind: nothing else can join it.
    names = [c for c in calls if c.id is None and c.arguments is None and not c.requested]
    if names and pending:
        by_name = _grouped(names, _name)
        pending = [
            (c, e)
            for c, e in pending
            if not (same := by_name.get(c.name)) or not _join(same, c, e, same_name, timely=False)
        ]
    for call, exchange in pending:
        calls.append(_only_requested(call, exchange, agents))


def requested(exchanges: Sequence[Exchange]) -> Iterable[tuple[Call, Exchange]]:
    """Calls in the answers. Where an answer was not exported, those of the turn's history that no answer holds."""
    incomplete = False
    for exchange in exchanges:
        speaks = False
        for message in exchange.messages_out:
            speaks = speaks or bool(message.text or message.calls)
            for call in message.calls:
                yield call, exchange
        incomplete = incomplete or not (speaks or exchange.text)
    if incomplete:
        yield from _from_history(exchanges)


def _from_history(exchanges: Sequence[Exchange]) -> Iterable[tuple[Call, Exchange]]:
    in_answers = [call for e in exchanges for m in e.messages_out for call in m.calls]
    known_ids = {call.id for call in in_answers}
    nameless: dict[str, list[Call]] = {}
    for call in in_answers:
        if call.id is None:
            nameless.setdefault(call.name, []).append(call)
    before: Exchange | None = None
    for exchange in exchanges:
        for message in this_turn(exchange.messages_in) if before is not None else ():
            for call in message.calls:
                if call.id is None or call.id in known_ids:
                    continue
                known_ids.add(call.id)
                if not _strike(nameless.get(call.name, []), call):
                    yield call, before or exchange
        before = exchange


def _strike(nameless: list[Call], call: Call) -> bool:
    """Whether an answer held this call without its id, as streamed ones do; each answers for one."""
    for index, other in enumerate(near(nameless)):
        if other.arguments == call.arguments:
            del nameless[index]
            return True
    return False


def _grouped(
    calls: Iterable[DraftCall], key: Callable[[DraftCall], Hashable]
) -> dict[Hashable, list[DraftCall]]:
    groups: dict[Hashable, list[DraftCall]] = {}
    for call in calls:
        groups.setdefault(key(call), []).append(call)
    return groups


def _without_same_id(calls: list[DraftCall], pending: _Pending) -> _Pending:
    """Join the calls that have the same id; returns the others."""
    by_id = _grouped((call for call in calls if isinstance(call.id, str)), lambda call: call.id)
    unjoined: _Pending = []
    for request, exchange in pending:
        same = by_id.get(request.id) if request.id is not None else None
        if not same or not _join(same, request, exchange, _any):
            unjoined.append((request, exchange))
    return unjoined


def _repeated_requests(calls: list[DraftCall], pending: _Pending) -> dict[str, list[int]]:
    """When each tool was asked for, of tools that left fewer spans than calls: one that failed may have left none."""
    if len(pending) < 2:
        return {}
    starts_by_name: dict[str, list[int]] = {}
    for call, exchange in pending:
        starts_by_name.setdefault(call.name, []).append(exchange.start)
    free = Counter(call.name for call in calls if not call.requested)
    return {
        name: sorted(starts)
        for name, starts in starts_by_name.items()
        if free[name] < len(starts) and starts[0] != starts[-1]
    }


def _any(_call: DraftCall, _request: Call) -> bool:
    return True


def _name(call: DraftCall | Call) -> Hashable:
    return call.name


def _name_and_arguments(call: DraftCall | Call) -> Hashable:
    """Equal for calls with `DraftCall.same_arguments`, seldom for others: comparing all with all costs the square."""
    plain = (
        (key, None if isinstance(value, dict | list) else value)
        for key, value in as_dict(call.arguments).items()
    )
    return call.name, frozenset(plain) or str(call.arguments or {})


def _by_result(
    calls: Sequence[DraftCall], pending: _Pending, exchanges: Sequence[Exchange]
) -> Callable[[DraftCall, Call], bool] | None:
    """Whether a span of which only the result is known has the one that a model was sent under the request's id.

    None: of no span is only the result known.
    """
    if not pending or not any(map(_has_only_result, calls)):
        return None
    sent = {
        result.id: unwrap(result.content)
        for exchange in exchanges
        for message in this_turn(exchange.messages_in)
        for result in message.results
        if result.id is not None
    }

    def matches(call: DraftCall, request: Call) -> bool:
        return (
            _has_only_result(call)
            and request.id in sent
            and sent[request.id] == unwrap(call.result)
        )

    return matches


def _has_only_result(call: DraftCall) -> bool:
    return call.id is None and call.arguments is None and call.result is not None


def same_name(call: DraftCall, request: Call) -> bool:
    """Same name: the same call unless both know better, by different ids."""
    return call.name == request.name and not (call.id and request.id and call.id != request.id)


def _join(
    calls: list[DraftCall],
    request: Call,
    exchange: Exchange,
    matches: Callable[[DraftCall, Call], bool],
    starts: list[int] | None = None,
    *,
    timely: bool | None = None,
) -> bool:
    """Mark the first call that fits and take it out; `starts`: a span goes to the last of these before it began.

    `timely`: whether only a call fits that did not end before the model was asked, or only one that did; None: either.
    """
    following = starts[bisect_right(starts, exchange.start) :][:1] if starts else []
    for index, call in enumerate(calls if len(calls) <= NEAR else near(calls)):
        if call.requested:
            continue
        if timely is not None:
            is_early = bool(call.end) and call.end < exchange.start
            if timely is (is_early or (bool(following) and following[0] <= call.start)):
                continue
        if matches(call, request):
            del calls[index]
            call.requested = True
            call.learn_id(request.id)
            if not isinstance(call.arguments, dict) and request.arguments is not None:
                # LangChain shows a single argument as its bare text.
                call.arguments = request.arguments
            return True
    return False


def _only_requested(call: Call, exchange: Exchange, agents: Agents) -> DraftCall:
    return DraftCall(
        name=call.name,
        id=call.id,
        arguments=call.arguments,
        agent=agents.of_first(exchange.layers),
        requested=True,
        start=exchange.end,
    )


# --- results of calls whose spans have none: from the step around the span, or from a message ------------------------


_NOTHING = (None, "")
"""Some libraries leave the result of a tool's span empty where the message that follows has it."""


def add_results(calls: Sequence[DraftCall], tree: Tree, exchanges: Sequence[Exchange]) -> None:
    """Give each call that lacks it its result: by id, from the latest message that has it; else by its place."""
    open_calls = [call for call in calls if call.result in _NOTHING]
    if not open_calls:
        return
    for call in open_calls:
        _take_around(call, tree)
    _add_by_id([call for call in open_calls if call.result in _NOTHING], exchanges)
    open_calls = [call for call in open_calls if call.result is None]
    if open_calls:
        _add_by_place(open_calls, calls, exchanges)


def _take_around(call: DraftCall, tree: Tree) -> None:
    """Take the output of the step around a tool's span that has none, as LangGraph's tool node."""
    if call.error is not None or call.facts is None:
        return
    around = tree.parent(call.facts)
    if around is None or around.kind != "other" or len(tree.children(around)) != 1:
        return
    results = [result for message in around.messages_out for result in message.results]
    same = [r for r in results if r.id == call.id] if call.id else results
    if len(same) == 1 and same[0].name in (None, call.name):
        call.take(same[0])
        call.id = call.id or same[0].id


def _add_by_id(calls: Sequence[DraftCall], exchanges: Sequence[Exchange]) -> None:
    """Histories repeat, so the last is looked at first; answers hold results where one span is a whole run."""
    open_by_id = {call.id: call for call in calls if call.id}
    for exchange in reversed(exchanges):
        for facts in exchange.layers:
            if not open_by_id:
                return
            if facts.input is not None and facts.input.may_mention(open_by_id):
                _take_by_id(open_by_id, facts.messages_in)
    for exchange in exchanges if open_by_id else ():
        _take_by_id(open_by_id, exchange.messages_out)


def _take_by_id(open_by_id: dict[str, DraftCall], messages: Sequence[Message]) -> None:
    """Give the calls their results, and take those that got one out of `wanted`."""
    for message in messages:
        for result in message.results:
            if result.id is not None and result.id in open_by_id:
                open_by_id.pop(result.id).take(result)


# --- by place --------------------------------------------------------------------------------------------------------


def _add_by_place(
    open_calls: Sequence[DraftCall], calls: Sequence[DraftCall], exchanges: Sequence[Exchange]
) -> None:
    """Results that name no call that is known answer the calls right before them: of the same name, else in order."""
    known_ids = {call.id for call in calls if call.id}
    answers: list[tuple[Call, Result]] = []
    for exchange in exchanges:
        in_exchange = [*_answers(_conversation(exchange), known_ids)]
        if in_exchange[: len(answers)] == answers:
            answers = in_exchange
        else:
            answers += [answer for answer in in_exchange if answer not in answers[-NEAR:]]
    taken = {call.id for call in calls if call.id and call.result is not None}
    answers = [(c, r) for c, r in answers if c.id not in taken and r.id not in taken]
    for call in open_calls:
        for matches in (_same_id, _same_name_and_arguments, _same_name):
            index = next((i for i, (c, _) in enumerate(near(answers)) if matches(call, c)), None)
            if index is not None:
                request, result = answers.pop(index)
                call.learn_id(request.id)
                call.take(result)
                break


def _conversation(exchange: Exchange) -> Sequence[Message]:
    sent = (this_turn(facts.messages_in) for facts in exchange.layers)
    history = next((messages for messages in sent if any(m.results for m in messages)), ())
    return (*history, *exchange.messages_out)


def _answers(
    messages: Iterable[Message], known_ids: AbstractSet[str]
) -> Iterable[tuple[Call, Result]]:
    requests: list[Call] = []
    answering = False
    for message in messages:
        if message.calls:
            requests = [*(() if answering else requests), *message.calls]
            answering = False
        for result in message.results:
            answering = True
            call = _call_of(requests, result, known_ids)
            if call is not None:
                requests.remove(call)
                yield call, result
            elif result.name is not None:
                yield Call(name=result.name, id=result.id), result


def _call_of(requests: Sequence[Call], result: Result, known_ids: AbstractSet[str]) -> Call | None:
    """The call of the result's id, else the first of its name.

    OpenAI's responses name a call twice, and some export one name with the call, the other with the result.
    """
    if result.id is not None:
        same = next((call for call in requests if call.id == result.id), None)
        if same is not None or result.id in known_ids:
            return same
    return next((call for call in requests if result.name in (None, call.name)), None)


def _same_id(call: DraftCall, request: Call) -> bool:
    return call.id is not None and call.id == request.id


def _same_name_and_arguments(call: DraftCall, request: Call) -> bool:
    return same_name(call, request) and call.same_arguments(request)


def _same_name(call: DraftCall, request: Call) -> bool:
    return same_name(call, request) and (call.arguments is None or request.arguments is None)
