"""The declaration of a dialect: which spans are its own, how they are read, and which settings improve them.

A dialect is one `Dialect` in one file of `readers/`, named in `registry.DIALECTS`. Detection, reading, docs/dialects.md
and the doctor's advice are read off that object. Every setting named in an advice was read in the instrumentation's own
documentation or source, which `source` cites. Where nothing can be set, the advice says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from inspect import cleandoc
from typing import Literal, get_args

from evaluators.dialects.content.facts import Facts, Kind, Wraps
from evaluators.dialects.fields import Field, FieldPlan, Fill, On, Row, quoted
from evaluators.model import Span

Lack = Literal[
    "not_read",
    "no_content",
    "content_in_logs",
    "no_question",
    "no_tool_arguments",
    "no_tool_results",
    "no_tool_definitions",
    "no_session",
    "scrubbed",
    "no_version",
    "no_tokens",
    "no_root",
    "late_root",
    "truncated",
    "dropped_attributes",
]
"""What spans can lack. `not_read`: no dialect reads them; `content_in_logs`: it came as log records; `no_question`:
what was asked, though the answer is there; `scrubbed`: logfire replaced the session id; `no_version`: neither the
agent's nor the service's, so that scores are of no release; `late_root`: the top span's parent is in another process
and never comes."""
LACKS: tuple[Lack, ...] = get_args(Lack)
CONTENT: tuple[Lack, ...] = ("no_content", "no_question", "no_tool_arguments", "no_tool_results")
ALL_CONTENT: tuple[Lack, ...] = (*CONTENT, "content_in_logs")
NO_SETTING = "(no setting)"
"""The `setting` of an advice where nothing can be set; its note says why."""
OPT_IN = "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental"
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One setting, in the agent's process, that supplies what the spans of one instrumentation lack."""

    lacks: tuple[Lack, ...]
    setting: str  # exactly what to set, as one would type it
    note: str = ""
    source: str
    speakers: tuple[str, ...] = ()
    """Prefixes of instrumentation scopes, or names of dialects. Empty: those of the declaring dialect, else any."""
    not_beside: tuple[str, ...] = ()
    """Names of dialects beside which it does not apply: two instrumentations may share the name of a scope."""

    language: str = ""  # of the SDK whose programs it is for; empty: of any

    def fits(
        self, scopes: Iterable[str], dialects: Iterable[str], sdks: Sequence[str] = ()
    ) -> bool:
        if sdks and not any(sdk.startswith(self.language) for sdk in sdks):
            return False
        spoken = [*dialects]
        if not set(spoken).isdisjoint(self.not_beside):
            return False
        names = [*scopes, *spoken]
        return not self.speakers or any(name.startswith(self.speakers) for name in names)


_ROWS: Mapping[str, tuple[Lack, ...]] = {
    **{each: (each,) for each in LACKS},
    "content": CONTENT,
    "all_content": ALL_CONTENT,
}


def advice_of(table: str) -> tuple[Advice, ...]:
    """Advice as a table: what spans lack, with a language or the beginnings of scopes, and the setting; then the rest.

        no_session [go] of my.scope, my.other: what to set
            a note, where there is something to say, in any number of lines
            the source, in the last line

    Raises KeyError: a line names no lack.
    """
    rows: list[list[str]] = []
    for line in cleandoc(table).splitlines():
        if line.startswith(" "):
            rows[-1].append(line.strip())
        else:
            rows.append([line])
    return tuple(_advice(head, note, source) for head, *note, source in rows)


def _advice(head: str, note: Sequence[str], source: str) -> Advice:
    about, _, setting = head.partition(": ")
    about, _, scopes = about.partition(" of ")
    names, _, language = about.partition(" [")
    return Advice(
        lacks=tuple(each for name in names.split(", ") for each in _ROWS[name]),
        setting=setting,
        note=" ".join(note),
        source=source,
        language=language.removesuffix("]"),
        speakers=tuple(scopes.split(", ")) if scopes else (),
    )


Reader = Callable[[Span], Facts]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on scope and keys. It sees no value, so one answer holds for all spans that agree in both."""

    holds: Callable[[str, AbstractSet[str]], bool]

    def __and__(self, other: Condition) -> Condition:
        return Condition(lambda scope, keys: self.holds(scope, keys) and other.holds(scope, keys))

    def __or__(self, other: Condition) -> Condition:
        return Condition(lambda scope, keys: self.holds(scope, keys) or other.holds(scope, keys))

    def __invert__(self) -> Condition:
        return Condition(lambda scope, keys: not self.holds(scope, keys))


ANY = Condition(lambda _scope, _keys: True)


def scope(*prefixes: str) -> Condition:
    return Condition(lambda scope, _keys: scope.startswith(prefixes))


def scope_is(*names: str) -> Condition:
    return Condition(lambda scope, _keys: scope in names)


def has(*keys: str) -> Condition:
    return Condition(lambda _scope, names: not names.isdisjoint(keys))


class By:
    """The kind that the first of some attributes holding a text names; without such a text the kind stays as it is."""

    __slots__ = ("_keys", "_kinds")

    def __init__(self, *keys: str, kinds: Mapping[str, Kind]) -> None:
        self._keys, self._kinds = keys, kinds

    def __call__(self, facts: Facts) -> Kind:
        """The kind in lower case; `other` for a text that was not declared."""
        get, kinds = facts.span.attributes.get, self._kinds
        for key in self._keys:
            value = get(key)
            if type(value) is str and value in kinds:  # as nearly all are written
                return kinds[value]
            if text := quoted(value):
                return kinds.get(text.lower(), "other")
        return facts.kind


def kinds(*, llm: str = "", tool: str = "", agent: str = "", handoff: str = "") -> dict[str, Kind]:
    """Of each word, the kind of span that it names."""
    said: Mapping[Kind, str] = {"llm": llm, "tool": tool, "agent": agent, "handoff": handoff}
    return {word: kind for kind, text in said.items() for word in text.split()}


def _kept(facts: Facts) -> Kind:
    return facts.kind


_ON: Mapping[Kind, On] = {
    "llm": "model call",
    "tool": "tool",
    "agent": "agent",
    "handoff": "step",
    "other": "step",
}


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The least by which a span is of a dialect and a kind.

    docs/dialects.md shows it, and tests add one key of `Dialect.rows` at a time and read it back.
    """

    scope: str = ""
    spans: Mapping[On, Mapping[str, str]]
    """The attributes of a span on which fields are looked for, for every `on` of `rows`."""
    names: Mapping[On, str] = field(default_factory=dict[On, str])
    """The names of spans that say the kind by their name."""


def sample_by(
    key: str,
    *,
    call: str | None = None,
    tool: str | None = None,
    agent: str | None = None,
    step: str | None = None,
    scope: str = "",
) -> Sample:
    """The sample of a dialect of which one key names the kind of every span."""
    named: Mapping[On, str | None]
    named = {"model call": call, "tool": tool, "agent": agent, "step": step}
    spans: Mapping[On, Mapping[str, str]]
    spans = {on: {key: value} for on, value in named.items() if value is not None}
    return Sample(scope=scope, spans=spans)


@dataclass(frozen=True, kw_only=True, eq=False)
class Dialect:
    """How one instrumentation writes its spans. Either `read` is code, or kind, fields and finish are its table."""

    name: str
    speaks: Condition
    content: Condition = ANY
    """A span without these keys of its own is read by the next dialect that fits: the SDKs of backends put their scope
    or their type on spans of other instrumentations. It is still this dialect's where none fits."""
    event: str | None = None  # spans are only of this dialect with an event whose name begins so

    read: Reader | None = None  # reads the facts of a span in code, where a table is not enough

    base: Callable[[Span, str], Facts] | None = None
    """Reads the conventions first, under this dialect's name, where its spans follow them too."""
    based: Condition = ANY  # the spans that have this base
    kind: Callable[[Facts], Kind] = _kept
    fields: Mapping[Kind, tuple[Field, ...]] = field(default_factory=dict[Kind, tuple[Field, ...]])
    """The fields of each kind of span."""
    finish: Callable[[Facts], None] | None = None
    """Completes the facts where a field depends on more than its own value."""

    completed: bool = False  # whether fields that are still open are filled from the GenAI conventions on the same span
    wraps: Wraps | None = None
    """How a span without a kind names the function that people wrapped in it; None: they do not."""
    scopes: tuple[str, ...] = ()
    """Beginnings of the scopes to which `advice` also applies where no span was read as this dialect."""
    advice: str | tuple[Advice, ...] = ()
    """The settings that supply what its spans lack; a text is the table of `advice_of`."""
    reads: tuple[Row, ...] = ()  # for docs/dialects.md: the keys that `read` or `finish` looks at
    sample: Sample = Sample(spans={})
    """Spans of this dialect; empty for one without rows, whose spans are read as the conventions."""

    def rows(self) -> tuple[Row, ...]:
        table = (
            row
            for kind, fields in self.fields.items()
            for each in fields
            for row in each.rows(_ON[kind])
        )
        return (*self.reads, *table)

    def own_advice(self) -> tuple[Advice, ...]:
        speakers = (*self.scopes, self.name)
        advice = advice_of(self.advice) if isinstance(self.advice, str) else self.advice
        return tuple(a if a.speakers else replace(a, speakers=speakers) for a in advice)

    def reader(self, scope: str, keys: AbstractSet[str]) -> Reader:
        """How spans of this scope and these keys are read.

        What a kind's fields are read from depends on the keys alone. So it is looked up when the first span of that
        kind comes, and every later span is one loop over the fields that its keys can fill.
        """
        if self.read is not None:
            return self.read
        base = self.base if self.based.holds(scope, keys) else None
        name, kind_of, fields, finish = self.name, self.kind, self.fields, self.finish
        fills_of: dict[Kind, tuple[Fill, ...]] = {}

        def read(span: Span) -> Facts:
            facts = Facts(span=span, dialect=name) if base is None else base(span, name)
            kind = facts.kind = kind_of(facts)
            fills = fills_of.get(kind)
            if fills is None:
                fills = fills_of[kind] = FieldPlan(fields.get(kind, ()))(keys)
            get = span.attributes.get
            for fill in fills:
                fill(facts, get)
            if finish is not None:
                finish(facts)
            return facts

        return read
