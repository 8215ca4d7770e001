"""The tool calls that models asked for in messages, joined with those that left a span."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from evaluators.dialects.content.kernel import function_name
from evaluators.dialects.content.message_model import Call, this_turn
from evaluators.dialects.joining.agents import Agents
from evaluators.dialects.joining.model_calls import Exchange
from evaluators.dialects.joining.tool_call import FoundCall

_Pending = list[tuple[Call, Exchange]]


def add_requested(
    calls: list[FoundCall], exchanges: Sequence[Exchange], agents: Agents, *, kernel: bool
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
    pending = _without_known_ids(calls, pending)
    again = _asked_again(calls, pending)
    for matches in (_by_arguments, same_name):
        pending = [(c, e) for c, e in pending if not _join(calls, c, e, matches, again.get(c.name))]
    for call, exchange in pending:
        calls.append(_only_requested(call, exchange, agents))


def requested(exchanges: Sequence[Exchange]) -> Iterable[tuple[Call, Exchange]]:
    """Calls in the answers. Where an answer was not exported, those of the turn's history that no answer holds."""
    silent = False
    for exchange in exchanges:
        said = False
        for message in exchange.messages_out:
            said = said or bool(message.text or message.calls)
            for call in message.calls:
                yield call, exchange
        silent = silent or not (said or exchange.text)
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


def _without_known_ids(calls: list[FoundCall], pending: _Pending) -> _Pending:
    """Join the calls that have the same id; what is left could not be joined so."""
    by_id: dict[str, list[FoundCall]] = {}
    for call in calls:
        if isinstance(call.id, str):
            by_id.setdefault(call.id, []).append(call)
    left: _Pending = []
    for wanted, exchange in pending:
        same = by_id.get(wanted.id, []) if wanted.id is not None else []
        if not _join(same, wanted, exchange, _any):
            left.append((wanted, exchange))
    return left


def _asked_again(calls: list[FoundCall], pending: _Pending) -> dict[str, list[int]]:
    """When each tool was asked for, of tools that left fewer spans than calls: one that failed may have left none."""
    if len(pending) < 2:
        return {}
    asked: dict[str, list[int]] = {}
    for call, exchange in pending:
        asked.setdefault(call.name, []).append(exchange.start)
    free = [call.name for call in calls if not call.requested]
    return {
        name: starts
        for name, starts in asked.items()
        if free.count(name) < len(starts) and starts[0] != starts[-1]
    }


def _any(_call: FoundCall, _wanted: Call) -> bool:
    return True


def _by_arguments(call: FoundCall, wanted: Call) -> bool:
    return call.name == wanted.name and call.same_arguments(wanted)


def same_name(call: FoundCall, wanted: Call) -> bool:
    """Same name: the same call unless both know better, by different ids."""
    return call.name == wanted.name and not (call.id and wanted.id and call.id != wanted.id)


def _join(
    calls: list[FoundCall],
    wanted: Call,
    exchange: Exchange,
    matches: Callable[[FoundCall, Call], bool],
    asked: list[int] | None = None,
) -> bool:
    """Mark the first call that fits; `asked`: a span goes to the last of these requests before it began."""
    for call in calls:
        if call.requested or (call.end and call.end < exchange.start):
            continue
        if asked is not None and any(exchange.start < again <= call.start for again in asked):
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
