"""Results of tool calls whose spans have none: from the step around the span, or from a message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from evaluators.dialects.content.message_model import Call, Message, Result, this_turn
from evaluators.dialects.joining.calls_in_answers import same_name
from evaluators.dialects.joining.model_calls import Exchange
from evaluators.dialects.joining.tool_call import DraftCall
from evaluators.dialects.joining.tree import Tree


def add_results(calls: Sequence[DraftCall], tree: Tree, exchanges: Sequence[Exchange]) -> None:
    """Give each call that lacks it its result: by id, from the latest message that has it; else by its place."""
    open_calls = [call for call in calls if call.result is None]
    if not open_calls:
        return
    for call in open_calls:
        _take_around(call, tree)
    _add_by_id([call for call in open_calls if call.result is None], exchanges)
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
            answers += [answer for answer in in_exchange if answer not in answers]
    taken = {call.id for call in calls if call.id and call.result is not None}
    answers = [(c, r) for c, r in answers if c.id not in taken and r.id not in taken]
    for call in open_calls:
        for matches in (_same_id, _same_name_and_arguments, _same_name):
            index = next((i for i, (c, _) in enumerate(answers) if matches(call, c)), None)
            if index is not None:
                request, result = answers.pop(index)
                call.id = call.id or request.id
                call.take(result)
                break


def _conversation(exchange: Exchange) -> Sequence[Message]:
    """This turn as the first layer has it that holds a result: the one nearest to the wire may leave them out."""
    sent = (this_turn(facts.messages_in) for facts in exchange.layers)
    history = next((messages for messages in sent if any(m.results for m in messages)), ())
    return (*history, *exchange.messages_out)


def _answers(
    messages: Iterable[Message], known_ids: AbstractSet[str]
) -> Iterable[tuple[Call, Result]]:
    """Every result with the call it answers."""
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
    """Same name, where arguments are not known on both sides: a result of other arguments is another call's."""
    return same_name(call, request) and (call.arguments is None or request.arguments is None)
