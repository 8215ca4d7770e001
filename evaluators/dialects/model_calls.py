"""The model calls of a trace, each once, however many instrumentation layers recorded it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from evaluators.dialects.agents import Agents
from evaluators.dialects.content import last_text
from evaluators.dialects.errors import error_of
from evaluators.dialects.facts import NO_TOKENS, Facts
from evaluators.dialects.limits import cap
from evaluators.dialects.parts import Message
from evaluators.dialects.tree import Tree
from evaluators.model import ModelCall, Tokens


class _Key(NamedTuple):
    """What two records of one call have in common."""

    what: str
    start: int
    tokens: Tokens


@dataclass(slots=True)
class Exchange:
    """One call of a model: the span nearest to the wire first, then the layers around it."""

    layers: list[Facts] = field(default_factory=list[Facts])

    @property
    def messages_in(self) -> tuple[Message, ...]:
        """What the model was sent, from the first layer that says it."""
        return next((f.messages_in for f in self.layers if f.messages_in), ())

    def may_mention(self, ids: Iterable[str]) -> bool:
        """Whether one of `ids` can stand in what the model was sent; cheaper than parsing it."""
        contents = [f.input for f in self.layers if f.input is not None]
        return any(content.may_mention(ids) for content in contents)

    @property
    def messages_out(self) -> tuple[Message, ...]:
        """What it answered."""
        return next((f.messages_out for f in self.layers if f.messages_out), ())

    @property
    def text(self) -> str | None:
        """The answer's text; None when it has none or was not exported."""
        for facts in self.layers:
            if facts.output is not None:
                messages = facts.output.messages
                text = _spoken(messages) if messages else facts.output.text
                if text:
                    return text
        return None

    @property
    def tokens(self) -> Tokens:
        """Counts of the call, from the layer nearest to the wire that has them."""
        return next((f.tokens for f in self.layers if f.tokens is not NO_TOKENS), NO_TOKENS)

    @property
    def cost(self) -> float | None:
        """What the call cost, when a layer says so exactly."""
        return next((f.cost for f in self.layers if f.cost is not None), None)

    @property
    def model(self) -> str | None:
        """The model that answered, else the one asked."""
        return next((f.model for f in self.layers if f.model), None)

    @property
    def start(self) -> int:
        """Unix nanoseconds."""
        return min(f.span.start_time_unix_nano for f in self.layers)

    @property
    def end(self) -> int:
        """Unix nanoseconds."""
        return max(f.span.end_time_unix_nano for f in self.layers)

    @property
    def error(self) -> str | None:
        """Why the call failed, else None."""
        return next((error for f in self.layers if (error := error_of(f.span))), None)


def _spoken(messages: tuple[Message, ...]) -> str | None:
    texts = [m.text for m in messages if m.role == "assistant" and m.text]
    return texts[-1] if texts else last_text(messages, "output")


def find_exchanges(tree: Tree) -> list[Exchange]:
    """Every model call once, in order of start."""
    inner: dict[str, list[Facts]] = {}
    calls = [facts for facts in tree.order if facts.kind == "llm"]
    for facts in calls:
        outer = _outer_call(tree, facts)
        if outer is not None:
            inner.setdefault(outer.span.span_id, []).append(facts)
    groups: dict[_Key, Exchange] = {}
    home: dict[str, Exchange] = {}
    for facts in calls:
        if facts.span.span_id not in inner:
            exchange = groups.setdefault(_key(facts), Exchange())
            exchange.layers.append(facts)
            home[facts.span.span_id] = exchange
    _add_outer_layers(calls, inner, home)
    return sorted(groups.values(), key=lambda e: (e.start, e.layers[0].span.span_id))


def _add_outer_layers(
    calls: list[Facts], inner: dict[str, list[Facts]], home: dict[str, Exchange]
) -> None:
    """A layer around exactly one call is that call once more; around several it is only their sum."""
    for facts in reversed(calls):
        if facts.span.span_id in home:
            continue
        layers = [f.span.span_id for f in inner[facts.span.span_id]]
        homes = {id(home[i]): home[i] for i in layers if i in home}
        if len(homes) == 1:
            exchange = next(iter(homes.values()))
            exchange.layers.append(facts)
            home[facts.span.span_id] = exchange


def _outer_call(tree: Tree, facts: Facts) -> Facts | None:
    """The model call around this one; an agent or a tool between them makes it a call of its own."""
    for ancestor in tree.ancestors(facts):
        if ancestor.kind == "llm":
            return ancestor
        if ancestor.kind != "other":
            return None
    return None


def _key(facts: Facts) -> _Key:
    """Response id and counts; without an id the parent and the start. Constant ids of test servers merge nothing."""
    if facts.response_id:
        return _Key(facts.response_id, 0, facts.tokens)
    if facts.tokens is NO_TOKENS:
        return _Key(facts.span.span_id, 0, NO_TOKENS)
    return _Key(facts.span.parent_span_id, facts.span.start_time_unix_nano, facts.tokens)


def model_call(exchange: Exchange, agents: Agents) -> ModelCall:
    """The exchange as evaluators see it."""
    leaf = exchange.layers[0]
    return ModelCall(
        span_id=leaf.span.span_id,
        model=exchange.model,
        agent=next((name for f in exchange.layers if (name := agents.of(f))), None),
        output=cap(exchange.text),
        error=cap(exchange.error),
        tokens=exchange.tokens,
        start_time_unix_nano=exchange.start,
        end_time_unix_nano=exchange.end,
    )
