"""The table of a dialect: the fields of a span's facts, each filled from the first of its keys that holds a value.

A field that the conventions on the same span filled already stays; `over` lets the dialect's own keys win. Which
keys a span has is looked up once per set of keys (`FieldPlan`), not per span.
"""

import copy
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from evaluators.dialects.content import usage
from evaluators.dialects.content.facts import NO_TOKENS, Content, Facts
from evaluators.dialects.content.messages import Side
from evaluators.dialects.content.tools import arguments_of
from evaluators.dialects.decoding.key_sets import Question
from evaluators.dialects.decoding.values import number, string, unwrap
from evaluators.model import JSON, Span, Tokens

Label = Literal[
    "input",
    "output",
    "system",
    "tools offered",
    "tool name",
    "tool call id",
    "arguments",
    "result",
    "input tokens",
    "output tokens",
    "cached tokens",
    "reasoning tokens",
    "cost",
    "model",
    "agent",
    "session",
    "user",
]
"""A field of the normalised trace, as docs/dialects.md names it."""
On = Literal["model call", "tool", "agent", "step", "any"]
Read = Callable[[JSON], Any]
"""From a recorded value to the field's; None: the value is empty, and the next key is tried."""
Default = Callable[[Span], Any]
Get = Callable[[str], JSON]
"""Gives the value of one attribute of the span."""
Fill = Callable[[Facts, Get], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of docs/dialects.md: a field, the spans on which it is looked for, and its keys, best first.

    `N` in a key stands for an index; `event name: key` is an attribute of a span event.
    """

    field: Label
    on: On
    keys: tuple[str, ...]


def row(field: Label, on: On, *keys: str) -> Row:
    return Row(field=field, on=on, keys=keys)


def token_rows(table: usage.TokenKeys, on: On = "model call") -> tuple[Row, ...]:
    counts = table.by_kind
    return (
        row("input tokens", on, *counts["input"]),
        row("output tokens", on, *counts["output"]),
        row("cached tokens", on, *counts["cached"]),
        row("reasoning tokens", on, *counts["reasoning"]),
    )


class Field:
    """One field of `Facts`, read from the first of its keys with a value, else given by its default."""

    __slots__ = ("_default", "_into", "_read", "keys", "label", "overrides")

    def __init__(
        self,
        label: Label | None,
        into: str,
        keys: tuple[str, ...],
        read: Read,
        default: Default | None = None,
    ) -> None:
        self.label: Label | None = label
        """None: it only serves to join spans, and is not documented."""
        self.keys = keys
        self.overrides = False
        self._into, self._read, self._default = into, read, default

    def rows(self, on: On) -> tuple[Row, ...]:
        return (row(self.label, on, *self.keys),) if self.label and self.keys else ()

    def within(self, names: AbstractSet[str]) -> Fill | None:
        """How it is filled on spans of these keys; None: it never is."""
        keys = tuple(key for key in self.keys if key in names)
        return self._filler(keys) if keys or self._default is not None else None

    def _filler(self, keys: tuple[str, ...]) -> Fill:
        into, read, default, overrides = self._into, self._read, self._default, self.overrides
        if read is string and len(keys) == 1 and default is None and not overrides:
            return _text_filler(into, keys[0])

        def fill(facts: Facts, get: Get) -> None:
            value = getattr(facts, into)
            if value is not None and value is not NO_TOKENS and not overrides:
                return
            for key in keys:
                if (own := read(get(key))) is not None:
                    setattr(facts, into, own)
                    return
            if value is None and default is not None:
                setattr(facts, into, default(facts.span))

        return fill


def _text_filler(into: str, key: str) -> Fill:
    """The most frequent: a text under one key."""

    def fill(facts: Facts, get: Get) -> None:
        if getattr(facts, into) is None:
            setattr(facts, into, string(get(key)))

    return fill


def _as_is(value: JSON) -> JSON:
    return value


def over(field: Field) -> Field:
    field = copy.copy(field)
    field.overrides = True
    return field


def quoted(value: JSON) -> str | None:
    """A text that was JSON-encoded once more."""
    return string(unwrap(value))


def span_name(span: Span) -> str | None:
    return span.name or None


def tool_name(*keys: str, read: Read = string, default: Default | None = None) -> Field:
    return Field("tool name", "tool_name", keys, read, default)


def tool_id(*keys: str, read: Read = string) -> Field:
    return Field("tool call id", "tool_id", keys, read)


def arguments(*keys: str, read: Read = arguments_of) -> Field:
    return Field("arguments", "arguments", keys, read)


def result(*keys: str, read: Read = _as_is) -> Field:
    """What the tool returned, with whatever is around it: `outcomes.settle` takes that off."""
    return Field("result", "result", keys, read)


def _content(
    label: Label,
    into: str,
    side: Side,
    keys: tuple[str, ...],
    read: Read | None,
    later: Read | None,
) -> Field:
    def make(value: JSON) -> Content | None:
        return None if value is None else Content(value, side)

    def make_of(value: JSON) -> Content | None:
        source = value if value is None or read is None else read(value)
        if source is None:
            return None
        return Content(source if later is None else partial(later, source), side)

    return Field(label, into, keys, make if read is None and later is None else make_of)


def input_from(*keys: str, read: Read | None = None, later: Read | None = None) -> Field:
    """The input: the value, through `read`, and through `later` when it is first looked at."""
    return _content("input", "input", "input", keys, read, later)


def output_from(*keys: str, read: Read | None = None, later: Read | None = None) -> Field:
    return _content("output", "output", "output", keys, read, later)


def definitions(*keys: str, read: Read | None = None, later: Read | None = None) -> Field:
    return _content("tools offered", "definitions", "input", keys, read, later)


def system(*keys: str) -> Field:
    return Field("system", "system", keys, _as_is)


def model(*keys: str, read: Read = string) -> Field:
    """The model that answered, else the one that was asked."""
    return Field("model", "model", keys, read)


def cost(*keys: str, read: Read = number) -> Field:
    """The exact cost of a model call in USD."""
    return Field("cost", "cost", keys, read)


def response_id(*keys: str) -> Field:
    return Field(None, "response_id", keys, string)


class _Agent(Field):
    """The agent's name, and whether the agent was given that name rather than its span."""

    __slots__ = ("_always", "_given")

    def __init__(
        self,
        keys: tuple[str, ...],
        beside: tuple[str, ...],
        default: Default | None,
        *,
        always: bool,
    ) -> None:
        super().__init__("agent", "agent", (*keys, *beside), string, default)
        self._given, self._always = frozenset(keys), always

    def _filler(self, keys: tuple[str, ...]) -> Fill:
        return partial(self._fill, keys)

    def _fill(self, keys: tuple[str, ...], facts: Facts, get: Get) -> None:
        if facts.agent is not None and not self.overrides:
            return
        for key in keys:
            if name := string(get(key)):
                facts.agent, facts.names_agent = name, self._always or key in self._given
                return
        if facts.agent is None and self._default is not None:
            facts.agent, facts.names_agent = self._default(facts.span), self._always


def agent(
    *keys: str, beside: tuple[str, ...] = (), default: Default | None = None, always: bool = False
) -> Field:
    """The agent that a span is, or works for.

    Args:
        keys: Attributes that hold the name which the agent was given.
        beside: Attributes that hold another name, of a workflow or of the span, looked at after `keys`.
        default: A name for a span without these attributes.
        always: Whether names from `beside` and `default` count as the agent's own as well.
    """
    return _Agent(keys, beside, default, always=always)


class _Counts(Field):
    """Token counts under keys of their own."""

    __slots__ = ("_table",)

    def __init__(self, into: str, table: usage.TokenKeys) -> None:
        keys = tuple(key for keys in table.by_kind.values() for key in keys)
        super().__init__("input tokens", into, keys, _as_is)
        self._table = table

    def rows(self, on: On) -> tuple[Row, ...]:
        return tuple(each for each in token_rows(self._table, on) if each.keys)

    def within(self, names: AbstractSet[str]) -> Fill | None:
        """The spellings that are there are found once."""
        into, count = self._into, self._table(names)
        if count is None:
            return None

        def fill(facts: Facts, get: Get) -> None:
            if (counts := count(get)) is not NO_TOKENS:
                setattr(facts, into, counts)

        return fill


def tokens(table: usage.TokenKeys = usage.GENAI) -> Field:
    return _Counts("tokens", table)


def aggregate(table: usage.TokenKeys = usage.GENAI) -> Field:
    return _Counts("aggregate", table)


def tokens_in(*keys: str, read: Callable[[JSON], Tokens]) -> Field:
    return Field("input tokens", "tokens", keys, read)


class Step(Field):
    """What depends on more than one value: `plan` tells for a span's keys what is done on it; None: nothing."""

    __slots__ = ("_plan",)

    def __init__(self, plan: Callable[[AbstractSet[str]], Fill | None]) -> None:
        super().__init__("input", "", (), _as_is)
        self._plan = plan

    def within(self, names: AbstractSet[str]) -> Fill | None:
        return self._plan(names)


def step(when: Question, fill: Fill) -> Field:
    return Step(lambda names: fill if when(names) else None)


@dataclass(slots=True, eq=False)
class FieldPlan:
    """The fields of one kind of span. The answer for a set of keys: how each is filled that can be."""

    fields: tuple[Field, ...]

    def __call__(self, names: AbstractSet[str]) -> tuple[Fill, ...]:
        fills = (field.within(names) for field in self.fields)
        return tuple(fill for fill in fills if fill is not None)
