"""The messages of each model call of a trace, read from its spans as `read_trace` reads them."""

from collections.abc import Mapping, Sequence

import msgspec

from evaluators.dialects.content.message_model import Message
from evaluators.dialects.decoding.decode import decode
from evaluators.dialects.decoding.room import one_trace
from evaluators.dialects.joining.model_calls import Exchange, find_exchanges
from evaluators.dialects.joining.system_prompt import system_of
from evaluators.dialects.joining.tree import Tree
from evaluators.dialects.lending.lend import lend
from evaluators.dialects.registry import read_facts


class Exchanged(msgspec.Struct, frozen=True, kw_only=True):
    sent: tuple[Message, ...] = ()  # the whole history, the system prompt first
    answered: tuple[Message, ...] = ()


def read_exchanged(pieces: Sequence[bytes], *, trace_id: str) -> Mapping[str, Exchanged]:
    """The messages of every model call, by the span id that it has in `Trace.model_calls`."""
    decoded = decode(pieces, trace_id.lower())
    if not decoded.spans:
        return {}
    spans, _ = lend(decoded.spans)
    with one_trace():
        exchanges = find_exchanges(Tree([read_facts(span) for span in spans]))
        return {each.layers[0].span.span_id: _exchanged(each) for each in exchanges}


def _exchanged(exchange: Exchange) -> Exchanged:
    sent = exchange.messages_in or _asked(exchange)
    system = system_of(exchange)
    if system and not any(each.role == "system" for each in sent):
        sent = (Message(role="system", text=system), *sent)
    answered = exchange.messages_out
    if exchange.text and not any(each.text for each in answered):
        answered = (Message(role="assistant", text=exchange.text), *answered)
    return Exchanged(sent=sent, answered=answered)


def _asked(exchange: Exchange) -> tuple[Message, ...]:
    for facts in exchange.layers:
        if facts.input is not None and (text := facts.input.text):
            return (Message(role="user", text=text),)
    return ()
