"""The question and the answer of a trace, and the system prompt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evaluators.dialects.content.blocks import read_content
from evaluators.dialects.content.content import Content
from evaluators.dialects.content.crewai import kickoff_question
from evaluators.dialects.decoding.reprs import looks_like_object
from evaluators.dialects.decoding.values import as_dict, as_list, string, text_of, unwrap
from evaluators.dialects.joining.model_calls import Exchange
from evaluators.dialects.joining.tree import Tree
from evaluators.model import JSON


def find_input(tree: Tree, exchanges: Sequence[Exchange]) -> str | None:
    """The user's last words: where the root has them, else in the first model call that does."""
    contents = [f.input for f in tree.spine if f.input is not None]
    return (
        _first_text(contents, cut=False)
        or kickoff_question(tree.spine, tree.order)
        or _first_text((f.input for e in exchanges for f in e.layers if f.input), cut=None)
        or _first_text(contents, cut=True)
        or (None if exchanges else _first_text(_shown(tree), cut=None))
        or _raw(contents)
    )


def _shown(tree: Tree) -> Iterable[Content]:
    """The conversations that went into the steps of a trace without model calls, in order of start."""
    steps = (f.input for f in tree.order if f.kind == "other" and f.input is not None)
    return (content for content in steps if content.messages)


def find_output(tree: Tree, exchanges: Sequence[Exchange]) -> str | None:
    """The answer: where the root has it, else the text of the last model call, best of one without tool calls."""
    contents = [f.output for f in tree.spine if f.output is not None]
    return _first_text(contents, cut=False) or _last_answer(exchanges) or _raw(contents)


def _first_text(contents: Iterable[Content], *, cut: bool | None) -> str | None:
    """The first text; `cut` chooses between contents that are whole, cut, or either."""
    for content in contents:
        if (cut is None or content.cut is cut) and (text := content.text):
            return text
    return None


def _raw(contents: Iterable[Content]) -> str | None:
    """A structured question or answer, as it was recorded."""
    for content in contents:
        value: JSON = content.value
        if isinstance(value, str) and looks_like_object(value):
            return value
        structured = as_dict(value) or as_list(value)
        if structured and not (content.messages or content.cut):
            return text_of(structured)
    return None


def _last_answer(exchanges: Sequence[Exchange]) -> str | None:
    ordered = sorted(exchanges, key=lambda e: (e.end, e.start), reverse=True)
    texts = [(e, text) for e in ordered if (text := e.text)]
    for exchange, text in texts:
        if not any(message.calls for message in exchange.messages_out):
            return text
    return texts[0][1] if texts else None


def find_system(tree: Tree, exchanges: Sequence[Exchange]) -> str | None:
    """The system prompt of the first model call, else the first that any span states."""
    for exchange in exchanges[:1]:
        for facts in exchange.layers:
            if text := _system_text(facts.system):
                return text
        for message in exchange.messages_in:
            if message.role == "system" and message.text:
                return message.text
    return next((text for f in tree.order if (text := _system_text(f.system))), None)


def _system_text(value: JSON) -> str | None:
    """A system prompt given as a text or as a list of parts."""
    if value is None:
        return None
    inner = unwrap(value)
    return string(inner) if isinstance(inner, str) else read_content(inner).text
