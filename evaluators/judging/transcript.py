"""A trace or a session as text within a budget: head, tail, all errors and all tool calls stay, values are cut.

Every decision is by size and place, so that equal recordings give equal texts.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from evaluators.expectations import Expectation
from evaluators.judging.prompt import visible
from evaluators.matching.json_values import encoded
from evaluators.model import JSON, AgentStep, ModelCall, Rejection, ToolCall, ToolDefinition, Trace
from evaluators.resources import Conversation

CHARACTERS_PER_TOKEN = 4
_LIMITS = (16_000, 8_000, 4_000, 2_000, 1_000, 500, 250, 120, 60)
Kind = Literal["heading", "call", "error", "value", "text", "minor"]
_THINNINGS: tuple[tuple[frozenset[Kind], int], ...] = (
    (frozenset({"minor"}), 8),
    (frozenset({"minor", "value"}), 8),
    (frozenset({"minor", "value"}), 1),
)
"""Kinds that lose their middle, and how many pieces stay at either end, tried in order until the text fits."""

_FACTOR = {"heading": 2, "call": 1, "error": 2, "value": 1, "text": 4, "minor": 1}
"""How much longer than a tool's values a piece may be: questions and answers matter most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A subject as a judge sees it."""

    text: str
    truncated: str | None = None  # a note on the parts left out; None = the whole recording


@dataclass(frozen=True, slots=True)
class _Piece:
    kind: Kind
    label: str
    text: str = ""


def trace_recording(
    trace: Trace, *, max_tokens: int, expectation: Expectation | None = None
) -> Transcript:
    output = None if expectation is None else expectation.output
    pieces = [*_tools(trace.tools_offered), *_trace_pieces(trace, output)]
    return _fit(pieces, max_tokens * CHARACTERS_PER_TOKEN)


def conversation_recording(
    conversation: Conversation, *, max_tokens: int, with_expected: bool
) -> Transcript:
    """A session's traces one after another within so many tokens; repeated parts are once."""
    tools = {tool.name: tool for trace in conversation.traces for tool in trace.tools_offered}
    pieces = list(_tools(tuple(tools.values())))
    systems: set[str | None] = {None}
    for number, trace in enumerate(conversation.traces, 1):
        expected = conversation.expected.get(trace.trace_id) if with_expected else None
        pieces.append(_Piece("heading", f"# turn {number}"))
        output = None if expected is None else expected.output
        pieces += _trace_pieces(trace, output, with_system=trace.system not in systems)
        systems.add(trace.system)
    if with_expected and conversation.outcomes:
        pieces.append(_Piece("heading", "# expected outcomes of the conversation"))
        pieces += [
            _Piece("text", f"{at}. ", text) for at, text in enumerate(conversation.outcomes, 1)
        ]
    return _fit(pieces, max_tokens * CHARACTERS_PER_TOKEN)


def _trace_pieces(
    trace: Trace, expected: str | None, *, with_system: bool = True
) -> Iterator[_Piece]:
    if trace.system and with_system:
        yield _Piece("value", "system prompt: ", trace.system)
    yield _Piece("text", "user input: ", trace.input or "(not recorded)")
    if expected is not None:
        yield _Piece("text", "expected output: ", expected)
    last = _answering(trace)
    counter = itertools.count(1)
    for step in _in_order(trace):
        if isinstance(step, ToolCall):
            yield from _tool_call(next(counter), step)
        elif isinstance(step, ModelCall) and step is not last:
            yield from _model_call(step)
        elif isinstance(step, AgentStep) and step is not last:
            yield _Piece("minor", f"{cut(step.agent or 'agent', 60)}: ", step.output or "")
    if trace.status == "error":
        yield _Piece("error", "the trace ended in error: ", trace.error or "no message")
    yield _Piece("text", "final output: ", trace.output or "(none)")


def _in_order(trace: Trace) -> list[ModelCall | ToolCall | AgentStep]:
    """What was done, in order of start; an agent's step is where it ended, after the calls within it."""
    placed: list[tuple[int, ModelCall | ToolCall | AgentStep]] = [
        (call.start_time_unix_nano, call) for call in (*trace.model_calls, *trace.tool_calls)
    ]
    last = 0
    for step in trace.steps:
        last = max(last, step.end_time_unix_nano)
        placed.append((last, step))
    placed.sort(key=lambda each: each[0])
    return [each for _, each in placed]


def _answering(trace: Trace) -> ModelCall | AgentStep | None:
    """The model call or agent's step whose text is the trace's output, so that the text is once."""
    same = (call for call in reversed(trace.model_calls) if call.output and not call.error)
    steps = reversed(trace.steps)
    return next((each for each in (*same, *steps) if each.output == trace.output), None)


_ENDED: dict[Rejection | None, str] = {
    None: "failed",
    "user": "refused by the user",
    "policy": "refused by a rule",
}
"""How a call ended that has an error, by who refused it."""


def _tool_call(number: int, call: ToolCall) -> Iterator[_Piece]:
    by = f" by {cut(call.agent, 60)}" if call.agent else ""
    yield _Piece("call", f"tool call {number}{by}: ", call.name)
    if call.arguments is not None:
        yield _Piece("value", "  arguments: ", _shown(call.arguments))
    if call.error is not None:
        yield _Piece("error", f"  {_ENDED[call.rejected]}: ", call.error)
    if call.result is not None:
        yield _Piece("value", "  result: ", _shown(call.result))


def _model_call(call: ModelCall) -> Iterator[_Piece]:
    if call.error is not None:
        yield _Piece("error", "model call failed: ", call.error)
    if call.output:
        yield _Piece("minor", "model: ", call.output)


def _tools(tools: Sequence[ToolDefinition]) -> Iterator[_Piece]:
    if tools:
        yield _Piece("heading", "tools offered:")
    for tool in tools:
        text = tool.description or ""
        if tool.parameters is not None:
            text = f"{text} {_shown(tool.parameters)}"
        yield _Piece("value", f"- {cut(tool.name, 100)} ", text)


def _shown(value: JSON) -> str:
    return value if isinstance(value, str) else encoded(value).decode(errors="replace")


def cut(text: str, limit: int) -> str:
    if len(text) <= limit + 40:  # the note would be longer
        return text
    note = f" [... {len(text) - limit} characters ...] "
    head = max(1, limit * 2 // 3)
    tail = limit - head
    return text[:head] + note + (text[-tail:] if tail > 0 else "")


def _fit(pieces: Sequence[_Piece], room: int) -> Transcript:
    # Hidden characters do not count, but a text twice the room is not worth the reading.
    if sum(len(piece.label) + len(piece.text) for piece in pieces) <= 2 * room:
        text = _rendered(pieces, None)
        if len(text) <= room:
            return Transcript(text=text)
    for limit in _LIMITS:
        text = _rendered(pieces, limit)
        if len(text) <= room:
            return Transcript(text=text, truncated=f"values cut to {limit} characters")
    return _thinned(pieces, room)


def _thinned(pieces: Sequence[_Piece], room: int) -> Transcript:
    limit = _LIMITS[-1]
    kept = pieces
    for kinds, ends in _THINNINGS:
        kept = _without_middle(pieces, kinds, ends)
        text = _rendered(kept, limit)
        if len(text) <= room:
            return Transcript(text=text, truncated=_left_out(pieces, kept))
    merged = _merged(kept)
    text = _rendered(merged, limit)
    cuts = f"{_left_out(pieces, kept)}; runs of calls of one tool shown as one"
    if len(text) > room:
        cuts += f"; {len(text) - room} characters in the middle left out"
        text = _cut_whole(merged, room)
    return Transcript(text=text, truncated=cuts)


def _left_out(pieces: Sequence[_Piece], kept: Sequence[_Piece]) -> str:
    parts = [f"values cut to {_LIMITS[-1]} characters"]
    names: tuple[tuple[Kind, str], ...] = (("minor", "model texts"), ("value", "values"))
    for kind, name in names:
        lost = sum(each.kind == kind for each in pieces) - sum(each.kind == kind for each in kept)
        if lost:
            parts.append(f"{lost} {name} left out")
    return "; ".join(parts)


def _cut_whole(pieces: Sequence[_Piece], room: int) -> str:
    errors = _rendered((piece for piece in pieces if piece.kind == "error"), _LIMITS[-1])
    repeated = cut(errors, max(0, room // 3 - 80))
    text = cut(_rendered(pieces, _LIMITS[-1]), max(0, room - len(repeated) - 80))
    return f"{text}\nall errors again:\n{repeated}" if errors else text


def _without_middle(pieces: Sequence[_Piece], kinds: frozenset[Kind], ends: int) -> list[_Piece]:
    middle: set[int] = set()
    for kind in kinds:
        places = [at for at, piece in enumerate(pieces) if piece.kind == kind]
        middle |= set(places[ends : len(places) - ends])
    return [piece for at, piece in enumerate(pieces) if at not in middle]


def _merged(pieces: Iterable[_Piece]) -> list[_Piece]:
    merged: list[_Piece] = []
    for (kind, text), run in itertools.groupby(
        pieces, key=lambda each: (each.kind, each.text if each.kind == "call" else None)
    ):
        every = list(run)
        if kind == "call" and len(every) > 1 and text is not None:
            merged.append(_Piece("call", f"{len(every)} tool calls: ", text))
        else:
            merged.extend(every)
    return merged


def _rendered(pieces: Iterable[_Piece], limit: int | None) -> str:
    return "\n".join(_line(piece, limit) for piece in pieces)


def _line(piece: _Piece, limit: int | None) -> str:
    """Further lines are indented, so that no value can look like a piece of its own."""
    text = piece.text if limit is None else cut(piece.text, limit * _FACTOR[piece.kind])
    return visible(piece.label).replace("\n", " ") + visible(text).replace("\n", "\n    ")
