"""Whether a trace ended with an answer, and what an answer says of itself."""

import re

from evaluators.matching.text import clip
from evaluators.model import Trace

_GAVE_UP = re.compile(
    r"\b(?:i|we)(?: |'m |\u2019m |'re |\u2019re )(?:\w+ )?"
    r"(?:could not|couldn't|couldn\u2019t|can ?not|can't|can\u2019t|failed to"
    r"|(?:am |was |are |were )?(?:not able|unable) to)\b"
    r"|\btry again later\b|\bsomething went wrong\b",
    re.IGNORECASE,
)
_GAVE_UP_WORDS = ("could", "can", "able", "failed", "later", "wrong")
"""Every match has one of these, which costs a tenth of the expression."""


def lacks_answer(trace: Trace) -> bool | None:
    """Whether the agent stopped without an answer; None: the spans do not tell.

    A hand-over, a refused call or another tool call that succeeded may end a turn without an answer. While a call has
    no result, the turn only waits: for an approval, or for what runs it. A turn that somebody stopped owes none.
    """
    if trace.status == "cancelled":
        return None
    if trace.output is not None and trace.output.strip():
        return False
    if {"no_content", "no_root"} & set(trace.gaps):
        return None
    if ends_with_call(trace):
        last = trace.tool_calls[-1]
        return None if last.unanswered else last.failed
    return True if says_what_models_answered(trace) else None


def gives_up(trace: Trace) -> bool | None:
    """Whether the answer says that the agent could not do it, in English; None: there is no answer."""
    if trace.status == "cancelled" or trace.output is None or not trace.output.strip():
        return None
    text = clip(trace.output)
    folded = text.casefold()
    return any(word in folded for word in _GAVE_UP_WORDS) and bool(_GAVE_UP.search(text))


def says_what_models_answered(trace: Trace) -> bool:
    return any(call.output for call in trace.model_calls) or any(
        call.arguments is not None for call in trace.tool_calls
    )


def ended_in_action(trace: Trace) -> bool:
    return ends_with_call(trace) and trace.tool_calls[-1].error is None


def ended_refused(trace: Trace) -> bool:
    """Whether the last thing asked for was refused: who refuses often stops the agent there."""
    return ends_with_call(trace) and trace.tool_calls[-1].rejected is not None


def ends_with_call(trace: Trace) -> bool:
    if not trace.tool_calls:
        return False
    return trace.tool_calls[-1].start_time_unix_nano >= _last_said(trace)


def _last_said(trace: Trace) -> int:
    began = (call.start_time_unix_nano for call in trace.model_calls)
    ended = (step.end_time_unix_nano for step in trace.steps)
    return max((*began, *ended), default=0)
