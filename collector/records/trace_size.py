"""A trace cut down to what one record of `traces` may take.

A trace record holds a trace twice, raw and normalised, so one of 11 MiB may be above what the log takes. Then values
of the normalised part are cut, the longest first, and the trace has the gap `truncated`. A cut value is a text: its
beginning, then its size and digest, so that two different values stay different.
"""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TypeVar

import msgspec
from msgspec.structs import replace as with_fields

from collector.log.port import MAX_RECORD
from collector.records.span_refs import Piece, size_of
from evaluators.matching.json_values import encoded
from evaluators.matching.text import clip
from evaluators.model import JSON, ModelCall, ToolCall, ToolDefinition, Trace

SMALL = 1 << 20
"""Bytes of raw spans whose normalised trace always fits beside them: the one is never ten times the other."""
TRACE_ROOM = 2 << 20
"""Bytes that a record keeps for the normalised trace; where raw spans leave less, they are left out."""
OVERHEAD = 64 << 10
"""Bytes of a record besides its trace and its spans: its key, field names, numbers."""
LENGTHS = (65_536, 16_384, 4_096, 1_024, 256)
"""Bytes of a value, tried in turn until the trace fits."""
TOO_LARGE = "too_large"  # `Trace.unread` of a trace that does not fit however its values are cut
P = TypeVar("P", bound=Piece)

_encoder = msgspec.msgpack.Encoder()


def kept_spans(pieces: Sequence[P]) -> tuple[P, ...]:
    """The raw spans that the trace's record holds: all of them, or none where they leave no room for the trace.

    The same where it only names them, so that a trace is the same in every log.
    """
    return tuple(pieces) if sum(map(size_of, pieces)) <= MAX_RECORD - TRACE_ROOM else ()


def fit_record(trace: Trace, pieces: Sequence[bytes]) -> Trace:
    """The trace, cut where its record, with the raw `pieces`, would be above what the log takes."""
    raw = sum(map(len, pieces))
    if raw <= SMALL:
        return trace
    if not kept_spans(pieces):
        return cut_trace(marked(trace), MAX_RECORD - OVERHEAD)
    return cut_trace(trace, MAX_RECORD - OVERHEAD - raw)


def room_beside(packed: bytes, pieces: Sequence[Piece]) -> int:
    return MAX_RECORD - OVERHEAD - len(packed) - sum(map(size_of, kept_spans(pieces)))


def cut_trace(trace: Trace, room: int) -> Trace:
    """The trace, its longest values cut until its msgpack takes at most `room` bytes; itself when it fits.

    One that fits at no length has too many parts: it keeps its names and times and is `unread`, so that every due
    evaluator fails and no score is given for a part of it.
    """
    if _size(trace) <= room:
        return trace
    for length in LENGTHS:
        cut = _cut(trace, length)
        if _size(cut) <= room:
            return marked(cut)
    return marked(_bare(trace))


def _size(trace: Trace) -> int:
    return len(_encoder.encode(trace))


def marked(trace: Trace) -> Trace:
    if "truncated" in trace.gaps:
        return trace
    return replace(trace, truncated=True, gaps=(*trace.gaps, "truncated"))


def _bare(trace: Trace) -> Trace:
    return replace(
        _cut(trace, LENGTHS[-1]),
        agents=(),
        models=(),
        tools_offered=(),
        tool_calls=(),
        model_calls=(),
        steps=(),
        turns=(),
        unread=TOO_LARGE,
    )


def _cut(trace: Trace, most: int) -> Trace:
    calls = tuple(_cut_call(call, most) for call in trace.tool_calls)
    # A schema would judge what is left of arguments, and find them wrong.
    unjudged = {
        cut.name
        for call, cut in zip(trace.tool_calls, calls, strict=True)
        if cut.arguments is not call.arguments
    }
    return replace(
        trace,
        system=_cut_text(trace.system, most),
        input=_cut_text(trace.input, most),
        output=_cut_text(trace.output, most),
        error=_cut_text(trace.error, most),
        tools_offered=tuple(_cut_tool(tool, most, unjudged) for tool in trace.tools_offered),
        tool_calls=calls,
        model_calls=tuple(_cut_model_call(call, most) for call in trace.model_calls),
        steps=tuple(with_fields(step, output=_cut_text(step.output, most)) for step in trace.steps),
        turns=tuple(
            with_fields(
                each, input=_cut_text(each.input, most), output=_cut_text(each.output, most)
            )
            for each in trace.turns
        ),
    )


def _cut_call(call: ToolCall, most: int) -> ToolCall:
    return with_fields(
        call,
        id=_cut_text(call.id, most),
        arguments=_cut_value(call.arguments, most),
        result=_cut_value(call.result, most),
        error=_cut_text(call.error, most),
    )


def _cut_model_call(call: ModelCall, most: int) -> ModelCall:
    return with_fields(call, output=_cut_text(call.output, most), error=_cut_text(call.error, most))


def _cut_tool(tool: ToolDefinition, most: int, unjudged: set[str]) -> ToolDefinition:
    is_whole = tool.name not in unjudged and len(encoded(tool.parameters)) <= most
    return replace(
        tool,
        description=_cut_text(tool.description, most),
        parameters=tool.parameters if is_whole else None,
    )


def _cut_value(value: JSON, most: int) -> JSON:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _cut_text(value, most)
    text = encoded(value)
    return value if len(text) <= most else _shortened(text, most)


def _cut_text(text: str | None, most: int) -> str | None:
    if text is None or len(text) * 4 <= most:
        return text
    raw = text.encode("utf-8", "surrogatepass")
    return text if len(raw) <= most else _shortened(raw, most)


def _shortened(raw: bytes, most: int) -> str:
    beginning = clip(raw[: most + 4].decode("utf-8", "ignore"), most)
    return f"{beginning}... [cut: {len(raw)} bytes, SHA-256 {sha256(raw).hexdigest()[:16]}]"
