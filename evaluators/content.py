"""What a trace's spans carry of its content, and which evaluators have nothing to read without it.

What the spans do not carry is never a score: an agent that exports no content is not perfect, it is not seen.
"""

from __future__ import annotations

from evaluators.declare import Spec
from evaluators.model import Content, Trace

_CONTENT: frozenset[Content] = frozenset({"text", "tool_calls", "tool_definitions"})

NO_CONTENT = "the spans carry no content: what the agent said and did is not seen"
NO_TEXT = (
    "the spans carry no text of question or answer; what they carry of tool calls shows no fault"
)


def has_text(trace: Trace) -> bool:
    """Whether the spans carry the text of the question or of the answer."""
    return "no_content" not in trace.gaps


def has_content(trace: Trace) -> bool:
    """Whether the spans carry any text, or arguments or results of tools."""
    return has_text(trace) or any(
        call.arguments is not None or call.result is not None for call in trace.tool_calls
    )


def reads_content(spec: Spec) -> bool:
    """Whether the evaluator reads what was said or done, not counts and times alone."""
    return bool(spec.reads & _CONTENT)


def is_blind(spec: Spec, trace: Trace) -> bool:
    """Whether the spans carry nothing of what the evaluator reads of a trace's content."""
    if "text" in spec.reads:
        return not has_text(trace)
    return reads_content(spec) and not has_content(trace)


def is_unfounded(spec: Spec, trace: Trace, score: float | None) -> bool:
    """Whether a perfect score only says that no fault was seen in a trace whose text is not there."""
    return score == 1 and reads_content(spec) and not has_text(trace)
