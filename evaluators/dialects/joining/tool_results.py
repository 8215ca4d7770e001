"""What tool calls gave, where their spans do not say it: the step around the span does, or a message."""

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
    """What the step around a tool's span gave, where the span says nothing: LangGraph's tool node answers for it."""
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
    wanted = {call.id: call for call in calls if call.id}
    for exchange in reversed(exchanges):
        for facts in exchange.layers:
            if not wanted:
                return
            if facts.input is not None and facts.input.may_mention(wanted):
                _take_by_id(wanted, facts.messages_in)
    for exchange in exchanges if wanted else ():
        _take_by_id(wanted, exchange.messages_out)


def _take_by_id(wanted: dict[str, DraftCall], messages: Sequence[Message]) -> None:
    """Give the calls their results, and take those that got one out of `wanted`."""
    for message in messages:
        for result in message.results:
            if result.id is not None and result.id in wanted:
                wanted.pop(result.id).take(result)


# --- by place --------------------------------------------------------------------------------------------------------


def _add_by_place(
    open_calls: Sequence[DraftCall], calls: Sequence[DraftCall], exchanges: Sequence[Exchange]
) -> None:
    """Results that name no call that is known answer the calls right before them: of the same name, else in order."""
    known = {call.id for call in calls if call.id}
    answers: list[tuple[Call, Result]] = []
    for exchange in exchanges:
        found = [*_answers(_conversation(exchange), known)]
        if found[: len(answers)] == answers:
            answers = found
        else:
            answers += [answer for answer in found if answer not in answers]
    taken = {call.id for call in calls if call.id and call.result is not None}
    answers = [(c, r) for c, r in answers if c.id not in taken and r.id not in taken]
    for call in open_calls:
        for matches in (_same_id, _same_name_and_arguments, _same_name):
            index = next((i for i, (c, _) in enumerate(answers) if matches(call, c)), None)
            if index is not None:
                asked, result = answers.pop(index)
                call.id = call.id or asked.id
                call.take(result)
                break


def _conversation(exchange: Exchange) -> Sequence[Message]:
    """This turn as the first layer has it that holds a result: the one nearest to the wire may leave them out."""
    sent = (this_turn(facts.messages_in) for facts in exchange.layers)
    told = next((messages for messages in sent if any(m.results for m in messages)), ())
    return (*told, *exchange.messages_out)


def _answers(messages: Iterable[Message], known: AbstractSet[str]) -> Iterable[tuple[Call, Result]]:
    """Every result with the call it answers."""
    asked: list[Call] = []
    answering = False
    for message in messages:
        if message.calls:
            asked = [*(() if answering else asked), *message.calls]
            answering = False
        for result in message.results:
            answering = True
            call = _answered(asked, result, known)
            if call is not None:
                asked.remove(call)
                yield call, result
            elif result.name is not None:
                yield Call(name=result.name, id=result.id), result


def _answered(asked: Sequence[Call], result: Result, known: AbstractSet[str]) -> Call | None:
    """The call of the result's id, else the first of its name.

    OpenAI's responses name a call twice, and some export one name with the call, the other with the result.
    """
    if result.id is not None:
        same = next((call for call in asked if call.id == result.id), None)
        if same is not None or result.id in known:
            return same
    return next((call for call in asked if result.name in (None, call.name)), None)


def _same_id(call: DraftCall, asked: Call) -> bool:
    return call.id is not None and call.id == asked.id


def _same_name_and_arguments(call: DraftCall, asked: Call) -> bool:
    return same_name(call, asked) and call.same_arguments(asked)


def _same_name(call: DraftCall, asked: Call) -> bool:
    """Same name, where arguments are not known on both sides: a result of other arguments is another call's."""
    return same_name(call, asked) and (call.arguments is None or asked.arguments is None)
