"""The model calls of a trace, each once, however many instrumentation layers recorded it."""

from functools import cached_property

from evaluators.dialects.content.endings import ending_in, ending_on
from evaluators.dialects.content.facts import NO_TOKENS, Facts, last_text
from evaluators.dialects.content.failures import answered_error
from evaluators.dialects.content.message_model import Message
from evaluators.dialects.content.usage import filled, with_cached
from evaluators.dialects.decoding.values import unwrap
from evaluators.dialects.joining.tree import Tree
from evaluators.model import Ending, Tokens

_NEAR = 64  # calls before one that may be the same, recorded by a layer around it; they are in order of start
_Key = tuple[str, int, int | None, int | None, int | None, int | None]
"""Equal for two records of one call: an id, a start, four counts."""


class Exchange:
    """One call of a model: the span nearest to the wire first, then the layers around it.

    Model, tokens, cost and error are taken from the first layer that has them.
    """

    def __init__(self, layers: list[Facts]) -> None:
        leaf = layers[0]
        self.layers = layers
        self.start = leaf.span.start_time_unix_nano  # Unix nanoseconds
        self.end = leaf.span.end_time_unix_nano  # Unix nanoseconds
        self.model = leaf.model  # the model that answered, else the one asked
        self.tokens = leaf.tokens
        self.cost = leaf.cost  # the exact cost in USD, when a layer states it
        self._error = leaf.error
        for facts in layers[1:]:
            self._add(facts)
        self.tokens = with_cached(self.tokens, self.model, leaf.span.attributes.get)

    def _add(self, outer: Facts) -> None:
        span = outer.span
        self.start = min(self.start, span.start_time_unix_nano)
        self.end = max(self.end, span.end_time_unix_nano)
        self.model = self.model or outer.model
        self.tokens = _fuller(self.tokens, outer.tokens)
        self.cost = outer.cost if self.cost is None else self.cost
        self._error = self._error or outer.error

    @property
    def error(self) -> str | None:
        if self.is_cancelled:
            return None
        if self._error is None and not self.messages_out:
            outputs = (facts.output.value for facts in self.layers if facts.output is not None)
            self._error = next(filter(None, map(answered_error, outputs)), None)
        return self._error

    @property
    def is_cancelled(self) -> bool:
        return any(facts.is_cancelled for facts in self.layers)

    @property
    def ending(self) -> Ending | None:
        for facts in self.layers:
            if found := ending_on(facts.span):
                return found
        for facts in self.layers:
            # OpenInference's own messages are without the reason, which the provider's answer beside them has.
            whole = unwrap(facts.span.attributes.get("output.value"))
            for each in (facts.output and facts.output.value, whole):
                if found := ending_in(each):
                    return found
        return None

    @property
    def messages_in(self) -> tuple[Message, ...]:
        for facts in self.layers:
            if messages := facts.messages_in:
                return messages
        return ()

    @cached_property
    def messages_out(self) -> tuple[Message, ...]:
        for facts in self.layers:
            if messages := facts.messages_out:
                return messages
        return ()

    @cached_property
    def text(self) -> str | None:
        """The answer's text; None when it has none or was not exported."""
        for facts in self.layers:
            if facts.output is not None and (
                facts.output.messages or answered_error(facts.output.value) is None
            ):
                messages = facts.output.messages
                text = _spoken(messages) if messages else facts.output.text
                if text:
                    return text
        return None


def _fuller(inner: Tokens, outer: Tokens) -> Tokens:
    """The inner layer's counts; what it lacks is the outer's, where both agree in what was sent and answered."""
    if inner is NO_TOKENS:
        return outer
    agree = (inner.input, inner.output) == (outer.input, outer.output)
    return filled(inner, outer) if agree and inner != outer else inner


def _spoken(messages: tuple[Message, ...]) -> str | None:
    texts = [m.text for m in messages if m.role == "assistant" and m.text]
    return texts[-1] if texts else last_text(messages, "output")


def find_exchanges(tree: Tree) -> list[Exchange]:
    inner: dict[str, list[Facts]] = {}
    calls = _without_sums(tree, [facts for facts in tree.order if facts.kind == "llm"])
    for facts in calls:
        outer = _outer_call(tree, facts)
        if outer is not None:
            inner.setdefault(outer.span.span_id, []).append(facts)
    groups: dict[_Key, list[Facts]] = {}
    home: dict[str, list[Facts]] = {}
    for facts in calls:
        if facts.span.span_id not in inner:
            layers = groups.setdefault(_key(facts), [])
            layers.append(facts)
            home[facts.span.span_id] = layers
    _add_outer_layers(calls, inner, home)
    apart = list(groups.values())
    if len(tree.scopes) > 1:
        apart = _separated(apart)
    exchanges = [Exchange(layers) for layers in apart]
    return sorted(exchanges, key=lambda e: (e.start, e.layers[0].span.span_id))


def _without_sums(tree: Tree, calls: list[Facts]) -> list[Facts]:
    """Without whole runs whose calls left spans of their own."""
    if not any(facts.whole_run for facts in calls):
        return calls
    around = {outer.span.span_id for facts in calls for outer in tree.ancestors(facts)}
    return [f for f in calls if not (f.whole_run and f.span.span_id in around)]


def _add_outer_layers(
    calls: list[Facts], inner: dict[str, list[Facts]], home: dict[str, list[Facts]]
) -> None:
    """A layer around exactly one call is that call once more; around several it is only their sum."""
    for facts in reversed(calls):
        if facts.span.span_id in home:
            continue
        ids = [f.span.span_id for f in inner[facts.span.span_id]]
        homes = {id(home[i]): home[i] for i in ids if i in home}
        if len(homes) == 1:
            layers = next(iter(homes.values()))
            layers.append(facts)
            home[facts.span.span_id] = layers


def _separated(groups: list[list[Facts]]) -> list[list[Facts]]:
    """One group per call: of two instrumentations beside each other, one may count an answer differently or not."""
    calls_apart: list[list[Facts]] = []
    for layers in groups:
        twin = next((k for k in calls_apart[-_NEAR:] if _one_answer(k[0], layers[0])), None)
        if twin is None:
            calls_apart.append(layers)
        else:  # the one that began later is nearer to the wire
            twin[:0] = layers
    return calls_apart


def _one_answer(first: Facts, later: Facts) -> bool:
    """Whether spans of two instrumentations record one answer, the later inside the first's time.

    Beside each other their ids or counts say so. In two branches of the trace, both their counts and their words do.
    """
    one, two = first.span, later.span
    if one.scope == two.scope:
        return False
    if not one.start_time_unix_nano <= two.start_time_unix_nano < one.end_time_unix_nano:
        return False
    if one.parent_span_id == two.parent_span_id:
        return _same_answer(first, later)
    within = two.end_time_unix_nano <= one.end_time_unix_nano
    counted = first.tokens.input is not None and _same_counts(first, later)
    return within and counted and _same_answer(first, later) and _same_words(first, later)


def _same_counts(first: Facts, later: Facts) -> bool:
    one, two = first.tokens, later.tokens
    return (one.input, one.output) == (two.input, two.output)


def _same_words(first: Facts, later: Facts) -> bool:
    """Whether neither says something else than the other."""
    texts = {Exchange([facts]).text for facts in (first, later)} - {None}
    return len(texts) < 2


def _same_answer(first: Facts, later: Facts) -> bool:
    """The same id; where one has none, the same counts; one that has neither shows only that there was a call."""
    if first.response_id and later.response_id:
        return first.response_id == later.response_id
    if first.tokens is NO_TOKENS:
        return first.response_id is None
    return first.tokens.input is not None and _same_counts(first, later)


def _outer_call(tree: Tree, facts: Facts) -> Facts | None:
    """The model call around this one; an agent or a tool between them makes it a call of its own."""
    parent = tree.parent(facts)
    if parent is None or parent.kind not in ("llm", "other"):
        return None
    for ancestor in tree.ancestors(facts):
        if ancestor.kind == "llm":
            return ancestor
        if ancestor.kind != "other":
            return None
    return None


def _key(facts: Facts) -> _Key:
    """Response id and counts; without an id the parent and the start. Constant ids of test servers merge nothing."""
    tokens, span = facts.tokens, facts.span
    if facts.response_id:
        what, start = facts.response_id, 0
    elif tokens is NO_TOKENS:
        what, start = span.span_id, 0
    else:
        what, start = span.parent_span_id, span.start_time_unix_nano
    return what, start, tokens.input, tokens.output, tokens.cached, tokens.reasoning
