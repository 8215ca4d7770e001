"""The question and the answer of a trace, its system prompt, and how much of a text is kept."""

import re
from collections.abc import Iterable, Sequence

from evaluators.dialects.content.facts import Content
from evaluators.dialects.content.failures import answered_error
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
from evaluators.dialects.joining.side_calls import of_the_outer_agent, own_calls
from evaluators.dialects.joining.tree import Tree
from evaluators.dialects.joining.turns import (
    TraceTurn,
    alike_tops,
    named_turns,
    runs_of_one_agent,
)
from evaluators.matching.text import QUESTION, clip
from evaluators.model import JSON, AgentStep, InnerTurn

_CONTEXT = re.compile(
    r"\A(?:\s*<(current_datetime|system-reminder|session_context|environment_context)>.*?</\1>)+\s*",
    re.DOTALL,
)
"""What coding agents put before a person's words in the same message."""
TEXT = 65_536  # characters of one text. A longer one is cut; of a question or an answer the trace is then `truncated`.
TURNS = 32  # turns of one trace that are kept, the newest: a loop is found in the turns in which it goes on
_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_\-]*)\}")
"""How CrewAI marks where an input of `kickoff(inputs=...)` goes."""
_DESCRIPTION = re.compile(r"""'description': ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")


def find_said(
    tree: Tree, exchanges: Sequence[Exchange], steps: Sequence[AgentStep]
) -> tuple[str | None, str | None, tuple[InnerTurn, ...]]:
    """Question and answer, from the root where it has them, else from the turn's own model calls; and `Trace.turns`.

    The question is the user's last words; where a voice agent's conversation is one trace, the first.
    """
    own: list[Exchange] | None = None
    several: Sequence[TraceTurn] = ()
    if len(tree.tops) > 1 and not tree.has_turns:
        own = own_calls(tree, exchanges)
        several = alike_tops(tree, own)
    if several:
        question, answer = _said_in(several[-1])
        return _cleaned(question), answer, tuple(map(_inner_turn, several[-TURNS:]))
    asked = [f.input for f in tree.spine if f.input is not None]
    answered = [f.output for f in tree.spine if f.output is not None]
    if answered and exchanges and exchanges[-1].error:
        answered = [each for each in answered if answered_error(each.value) is None]
    question = _first_text(asked, cut=False) or _crew_question(tree)
    answer = _first_text(answered, cut=False)
    if question is None or answer is None:
        own = own_calls(tree, exchanges) if own is None else own
        runs = runs_of_one_agent(tree, own) if len(own) > 1 else []
        several = (tree.has_turns and named_turns(tree, own)) or runs
        if runs:
            asked, answered = [*_inputs(runs[-1]), *asked], [*_outputs(runs[-1]), *answered]
            question = question or _first_text(asked, cut=False)
            answer = answer or _first_text(answered, cut=False)
        own = of_the_outer_agent(tree, runs[-1].calls if runs else own)
        question = question or _find_question(tree, asked, own)
        answer = answer or _find_answer(answered, own, steps)
    return _cleaned(question), answer, tuple(map(_inner_turn, several[-TURNS:]))


def _cleaned(question: str | None) -> str | None:
    return None if question is None else _plain_question(question)


def _inputs(turn: TraceTurn) -> list[Content]:
    return [f.input for f in turn.spans if f.input is not None]


def _outputs(turn: TraceTurn) -> list[Content]:
    return [f.output for f in reversed(turn.spans) if f.output is not None]


def _said_in(turn: TraceTurn) -> tuple[str | None, str | None]:
    sent = (f.input for e in turn.calls for f in e.layers if f.input)
    question = _first_text(_inputs(turn), cut=False) or _first_text(sent, cut=None)
    return question, _first_text(_outputs(turn), cut=False) or _last_answer(turn.calls)


def _inner_turn(turn: TraceTurn) -> InnerTurn:
    question, answer = _said_in(turn)
    span = (turn.spans or turn.calls[0].layers)[0].span
    return InnerTurn(
        span_id=span.span_id,
        input=None if question is None else clip(_plain_question(question), QUESTION),
        output=None if answer is None else clip(answer),
        start_time_unix_nano=min(each.start for each in turn.calls),
        end_time_unix_nano=max(each.end for each in turn.calls),
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
        or (None if exchanges else _first_text(_of_steps(tree), cut=None))
        or _raw(contents)
    )


def _of_steps(tree: Tree) -> Iterable[Content]:
    """The conversations that steps were shown, then what agents were sent."""
    for kind in ("other", "agent"):
        inputs = (f.input for f in tree.order if f.kind == kind and f.input is not None)
        yield from (each for each in inputs if kind == "agent" or each.messages)


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
    planned = as_list(unwrap(tasks))
    if planned:
        return string(as_dict(planned[0]).get("description"))
    match = _DESCRIPTION.search(tasks) if isinstance(tasks, str) else None
    literal = as_list(python_literal(f"[{match.group(1)}]")) if match else []
    return string(literal[0]) if len(literal) == 1 else None


def _filled_in(template: str, text: str) -> str | None:
    pieces = _PLACE.split(template)
    if len(pieces) != 3:
        return None
    head, _, tail = pieces
    fits = text.startswith(head) and text.endswith(tail) and len(text) > len(head) + len(tail)
    return string(text[len(head) : len(text) - len(tail)].strip()) if fits else None


# --- how much is kept ------------------------------------------------------------------------------------------------


def is_cut(text: str | None) -> bool:
    return text is not None and len(text) > TEXT


def cap(text: str | None) -> str | None:
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
