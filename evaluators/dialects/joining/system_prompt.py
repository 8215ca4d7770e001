"""The system prompt of a trace, and of each of its model calls."""

from collections.abc import Sequence

from evaluators.dialects.content.blocks import read_content
from evaluators.dialects.decoding.values import string, unwrap
from evaluators.dialects.joining.model_calls import Exchange
from evaluators.dialects.joining.tree import Tree
from evaluators.model import JSON


def find_system(tree: Tree, exchanges: Sequence[Exchange]) -> str | None:
    """The system prompt of the first model call, else the first that any span states."""
    for exchange in exchanges[:1]:
        if text := system_of(exchange):
            return text
    return next((text for f in tree.order if (text := _system_text(f.system))), None)


def system_of(exchange: Exchange) -> str | None:
    for facts in exchange.layers:
        if text := _system_text(facts.system):
            return text
    for message in exchange.messages_in:
        if message.role == "system" and message.text:
            return message.text
    return None


def _system_text(value: JSON) -> str | None:
    if value is None:
        return None
    inner = unwrap(value)
    return string(inner) if isinstance(inner, str) else read_content(inner).text
