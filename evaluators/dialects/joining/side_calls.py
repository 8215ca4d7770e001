"""Which model calls of a trace are the turn's own, from which question and answer are taken.

A side call is made about the turn, not in it: a guard before it, a title, a grade, a note for the memory. It is one
when a span above it says so, or when its prompt quotes the question or the answer of another call of the same agent
under another system prompt. What an agent answers itself is the answer, not what an agent below it says afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from evaluators.dialects.content.facts import Facts, last_text
from evaluators.dialects.joining.model_calls import Exchange
from evaluators.dialects.joining.system_prompt import system_of
from evaluators.dialects.joining.tree import Tree

_QUOTED = 3  # characters below which a text in another one is not a quotation
_PURPOSES = re.compile(
    r"\b(?:title|headline|summar\w+|classif\w+|categori\w+|moderat\w+|guardrail|toxic\w*|intent)\b",
    re.IGNORECASE,
)
"""What a system prompt speaks of, in English, when another question is asked than the user's."""
_TOOL = '"tool'  # in every history in which a tool was called, as JSON
_COMPARED = 32
"""Calls of one agent that are compared with one another, the first and the last of them."""


class _OwnedExchange(NamedTuple):
    exchange: Exchange
    owner: Facts | None  # the agent that made it; None: no span says
    parent: Facts | None  # what is above that agent, or above the call
    question: str
    system: str | None
    answer: str

    def is_about(self, other: _OwnedExchange) -> bool:
        """Whether it was made about the other one, and not in the same conversation."""
        if self.system == other.system:
            return False
        about_question = _quotes(self.question, other.question)
        about_answer = _quotes(self.question, other.answer)
        if self.owner is not None and self.owner is other.owner:
            return about_question or about_answer or self._asks_again(other)
        # The next step of a chain, or the next agent, is sent the answer of the one before it.
        return self.parent is other.parent and about_question and not about_answer

    def _asks_again(self, other: _OwnedExchange) -> bool:
        """Whether one agent put the same question to a model twice, this time for another purpose: a title, say."""
        if self.question != other.question:
            return False
        if self._has_purpose != other._has_purpose:
            return self._has_purpose
        return self.exchange.start > other.exchange.end

    @property
    def _has_purpose(self) -> bool:
        return self.system is not None and _PURPOSES.search(self.system) is not None


def own_calls(tree: Tree, exchanges: Sequence[Exchange]) -> list[Exchange]:
    """The calls of a trace without side calls, unless every call is one."""
    calls = list(exchanges)
    if tree.has_sides:
        calls = [each for each in exchanges if not _is_side(tree, each)]
    if len(calls) < 2:
        return calls or list(exchanges)
    about = _about_others(tree, calls)
    return [each for each in calls if each not in about] or calls if about else calls


def _about_others(tree: Tree, calls: Sequence[Exchange]) -> list[Exchange]:
    """Those that were made about another one; what uses tools never is."""
    every = [*calls[:_COMPARED], *calls[max(_COMPARED, len(calls) - _COMPARED) :]]
    may_be = [each for each in every if each.text and not _uses_tools(each)]
    if not may_be:
        return []
    asked = {id(each): _asked(tree, each) for each in every}
    return [
        each
        for each in may_be
        if asked[id(each)].question
        and any(other is not each and asked[id(each)].is_about(asked[id(other)]) for other in every)
    ]


def of_the_outer_agent(tree: Tree, own: list[Exchange]) -> list[Exchange]:
    """Without what agents below the first one's agent said after its own last answer."""
    outer = _owner(tree, own[0]) if len(own) > 1 else None
    if outer is None or _owner(tree, own[-1]) is outer:
        return own
    answers = [
        place
        for place, each in enumerate(own)
        if each.text and not _calls_tools(each) and _owner(tree, each) is outer
    ]
    if not answers:
        return own
    later = own[answers[-1] + 1 :]
    below = [each for each in later if outer in tree.ancestors(each.layers[-1])]
    return own if len(below) < len(later) else own[: answers[-1] + 1]


def _is_side(tree: Tree, exchange: Exchange) -> bool:
    outermost = exchange.layers[-1]
    return outermost.is_side or any(each.is_side for each in tree.ancestors(outermost))


def _owner(tree: Tree, exchange: Exchange) -> Facts | None:
    return next((f for f in tree.ancestors(exchange.layers[-1]) if f.kind == "agent"), None)


def _asked(tree: Tree, exchange: Exchange) -> _OwnedExchange:
    messages = exchange.messages_in
    owner = _owner(tree, exchange)
    return _OwnedExchange(
        exchange,
        owner,
        tree.parent(owner or exchange.layers[-1]),
        (last_text(messages, "input") or "").strip(),
        system_of(exchange),
        (exchange.text or "").strip(),
    )


def _calls_tools(exchange: Exchange) -> bool:
    return any(message.calls for message in exchange.messages_out)


def _uses_tools(exchange: Exchange) -> bool:
    if _calls_tools(exchange):
        return True
    sent = exchange.layers[0].input
    raw = None if sent is None else sent.raw
    if isinstance(raw, str) and _TOOL in raw:  # without reading a long history
        return True
    return any(message.calls or message.role == "tool" for message in exchange.messages_in)


def _quotes(text: str, quoted: str) -> bool:
    return len(quoted) >= _QUOTED and len(text) > len(quoted) and quoted in text
