"""The tool calls that models asked for in messages, joined with those that left a span."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from evaluators.dialects.content.message_model import Call, this_turn
from evaluators.dialects.joining.agents import Agents
from evaluators.dialects.joining.model_calls import Exchange
from evaluators.dialects.joining.tool_call import DraftCall, function_name

_Pending = list[tuple[Call, Exchange]]


def add_calls_in_answers(
    calls: list[DraftCall], exchanges: Sequence[Exchange], agents: Agents, *, kernel: bool
) -> None:
    """Join the calls that models asked for: by id, then by name and arguments, then by name, each in order of time."""
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
    for matches in (_by_arguments, same_name):
        pending = [
            (c, e) for c, e in pending if not _join(calls, c, e, matches, repeated.get(c.name))
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
    nameless = [call for call in in_answers if call.id is None]
    before: Exchange | None = None
    for exchange in exchanges:
        for message in this_turn(exchange.messages_in) if before is not None else ():
            for call in message.calls:
                if call.id is None or call.id in known_ids:
                    continue
                known_ids.add(call.id)
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


def _without_same_id(calls: list[DraftCall], pending: _Pending) -> _Pending:
    """Join the calls that have the same id; returns the others."""
    by_id: dict[str, list[DraftCall]] = {}
    for call in calls:
        if isinstance(call.id, str):
            by_id.setdefault(call.id, []).append(call)
    unjoined: _Pending = []
    for request, exchange in pending:
        same = by_id.get(request.id, []) if request.id is not None else []
        if not _join(same, request, exchange, _any):
            unjoined.append((request, exchange))
    return unjoined


def _repeated_requests(calls: list[DraftCall], pending: _Pending) -> dict[str, list[int]]:
    """When each tool was asked for, of tools that left fewer spans than calls: one that failed may have left none."""
    if len(pending) < 2:
        return {}
    starts_by_name: dict[str, list[int]] = {}
    for call, exchange in pending:
        starts_by_name.setdefault(call.name, []).append(exchange.start)
    free = [call.name for call in calls if not call.requested]
    return {
        name: starts
        for name, starts in starts_by_name.items()
        if free.count(name) < len(starts) and starts[0] != starts[-1]
    }


def _any(_call: DraftCall, _request: Call) -> bool:
    return True


def _by_arguments(call: DraftCall, request: Call) -> bool:
    return call.name == request.name and call.same_arguments(request)


def same_name(call: DraftCall, request: Call) -> bool:
    """Same name: the same call unless both know better, by different ids."""
    return call.name == request.name and not (call.id and request.id and call.id != request.id)


def _join(
    calls: list[DraftCall],
    request: Call,
    exchange: Exchange,
    matches: Callable[[DraftCall, Call], bool],
    starts: list[int] | None = None,
) -> bool:
    """Mark the first call that fits; `starts`: a span goes to the last of these requests before it began."""
    for call in calls:
        if call.requested or (call.end and call.end < exchange.start):
            continue
        if starts is not None and any(exchange.start < start <= call.start for start in starts):
            continue
        if matches(call, request):
            call.requested = True
            call.id = call.id or request.id
            if not isinstance(call.arguments, dict) and request.arguments is not None:
                call.arguments = (
                    request.arguments
                )  # LangChain shows a single argument as its bare text
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
