"""The question and the answer of a trace, its system prompt, and how much of a text is kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from evaluators.dialects.content.blocks import read_content
from evaluators.dialects.content.facts import Content
from evaluators.dialects.decoding.reprs import looks_like_object
from evaluators.dialects.decoding.values import (
    as_dict,
    as_list,
    python_literal,
    string,
    text_of,
    unwrap,
)
from evaluators.dialects.joining.model_calls import Exchange
from evaluators.dialects.joining.side_calls import own_calls
from evaluators.dialects.joining.tree import Tree
from evaluators.matching.text import QUESTION, clip
from evaluators.model import JSON, AgentStep, InnerTurn

_CONTEXT = re.compile(
    r"\A(?:\s*<(current_datetime|system-reminder|session_context|environment_context)>.*?</\1>)+\s*",
    re.DOTALL,
)
"""What coding agents put before a person's words in the same message."""
TEXT = 65_536
"""Characters of one text. A longer one is cut; of a question or an answer the trace is then `truncated`."""
TURNS = 32
"""Turns of one trace that are kept, the newest: a loop is found in the turns in which it goes on."""
_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_\-]*)\}")
"""How CrewAI marks where an input of `kickoff(inputs=...)` goes."""
_DESCRIPTION = re.compile(r"""'description': ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")


def find_said(
    tree: Tree, exchanges: Sequence[Exchange], steps: Sequence[AgentStep]
) -> tuple[str | None, str | None, tuple[InnerTurn, ...]]:
    """Question and answer, from the root where it has them, else from the turn's own model calls; and `Trace.turns`.

    The question is the user's last words; where a voice agent's conversation is one trace, the first.
    """
    asked = [f.input for f in tree.spine if f.input is not None]
    answered = [f.output for f in tree.spine if f.output is not None]
    question = _first_text(asked, cut=False) or _crew_question(tree)
    answer = _first_text(answered, cut=False)
    turns: tuple[InnerTurn, ...] = ()
    if question is None or answer is None:
        own, several = own_calls(tree, exchanges)
        question = question or _find_question(tree, asked, own)
        answer = answer or _find_answer(answered, own, steps)
        turns = tuple(map(_inner_turn, several[-TURNS:]))
    return None if question is None else _plain_question(question), answer, turns


def _inner_turn(calls: Sequence[Exchange]) -> InnerTurn:
    question = _first_text((f.input for e in calls for f in e.layers if f.input), cut=None)
    answer = _last_answer(calls)
    return InnerTurn(
        span_id=calls[0].layers[0].span.span_id,
        input=None if question is None else clip(_plain_question(question), QUESTION),
        output=None if answer is None else clip(answer),
        start_time_unix_nano=min(each.start for each in calls),
        end_time_unix_nano=max(each.end for each in calls),
    )


def _plain_question(question: str) -> str:
    """Without the context that a coding agent puts before it, and the quotes around one from a command line."""
    question = _CONTEXT.sub("", question) or question
    plain = unwrap(question) if question[0] == question[-1] == '"' else question
    return plain if isinstance(plain, str) and plain else question


def _find_question(
    tree: Tree, contents: Sequence[Content], exchanges: Sequence[Exchange]
) -> str | None:
    return (
        _first_text((f.input for e in exchanges for f in e.layers if f.input), cut=None)
        or _first_text(contents, cut=True)
        or (None if exchanges else _first_text(_shown(tree), cut=None))
        or (None if exchanges else _first_text(_sent_to_agents(tree), cut=None))
        or _raw(contents)
    )


def _shown(tree: Tree) -> Iterable[Content]:
    """The conversations that went into the steps of a trace without model calls, in order of start."""
    steps = (f.input for f in tree.order if f.kind == "other" and f.input is not None)
    return (content for content in steps if content.messages)


def _sent_to_agents(tree: Tree) -> Iterable[Content]:
    return (f.input for f in tree.order if f.kind == "agent" and f.input is not None)


def _find_answer(
    contents: Sequence[Content], exchanges: Sequence[Exchange], steps: Sequence[AgentStep]
) -> str | None:
    """The text of the last model call, best of one without tool calls; without a model call that of the last step."""
    return (
        _last_answer(exchanges)
        or (steps[-1].output if steps and not exchanges else None)
        or _raw(contents)
    )


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
        if text := system_of(exchange):
            return text
    return next((text for f in tree.order if (text := _system_text(f.system))), None)


def system_of(exchange: Exchange) -> str | None:
    """The system prompt of one model call."""
    for facts in exchange.layers:
        if text := _system_text(facts.system):
            return text
    for message in exchange.messages_in:
        if message.role == "system" and message.text:
            return message.text
    return None


def _system_text(value: JSON) -> str | None:
    """A system prompt given as a text or as a list of parts."""
    if value is None:
        return None
    inner = unwrap(value)
    return string(inner) if isinstance(inner, str) else read_content(inner).text


# --- CrewAI ----------------------------------------------------------------------------------------------------------


def _crew_question(tree: Tree) -> str | None:
    """The input of a CrewAI crew under OpenLLMetry, whose model is sent a prompt made around it.

    It is the value at the one placeholder of the first task's description, else that description.
    """
    crew = next((f.span for f in tree.spine if "crewai.crew.tasks" in f.span.attributes), None)
    if crew is None:
        return None
    tasks = (string(f.span.attributes.get("crewai.task.description")) for f in tree.order)
    description = next((task for task in tasks if task), None)
    template = _first_description(crew.attributes.get("crewai.crew.tasks"))
    if description is None or template is None:
        return description or template
    return _filled_in(template, description) or description


def _first_description(tasks: JSON) -> str | None:
    """The first task's description as it was planned, in JSON or in the repr of objects."""
    planned = as_list(unwrap(tasks))
    if planned:
        return string(as_dict(planned[0]).get("description"))
    match = _DESCRIPTION.search(tasks) if isinstance(tasks, str) else None
    literal = as_list(python_literal(f"[{match.group(1)}]")) if match else []
    return string(literal[0]) if len(literal) == 1 else None


def _filled_in(template: str, text: str) -> str | None:
    """The value in `text` for the only placeholder of `template`."""
    pieces = _PLACE.split(template)
    if len(pieces) != 3:
        return None
    head, _, tail = pieces
    fits = text.startswith(head) and text.endswith(tail) and len(text) > len(head) + len(tail)
    return string(text[len(head) : len(text) - len(tail)].strip()) if fits else None


# --- how much is kept ------------------------------------------------------------------------------------------------


def is_cut(text: str | None) -> bool:
    """Whether `cap` keeps only a part of it."""
    return text is not None and len(text) > TEXT


def cap(text: str | None) -> str | None:
    """The first `TEXT` characters."""
    return text[:TEXT] if text is not None else None


def cap_json(value: JSON) -> JSON:
    """The value; when its text is too long, the beginning of that text."""
    as_is = value
    if isinstance(value, str):
        return cap(value)
    if not isinstance(value, dict | list):
        return value
    text = text_of(value)
    return as_is if text is not None and len(text) <= TEXT else cap(text)
