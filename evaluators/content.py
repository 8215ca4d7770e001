"""What a trace's spans carry of its content, and which evaluators have nothing to read without it.

What the spans do not carry is never a score: an agent that exports no content is not perfect, it is not seen.
"""

from evaluators.declare import Spec
from evaluators.model import Content, Outcome, Trace

_CONTENT: frozenset[Content] = frozenset({"text", "tool_calls", "tool_definitions"})

NO_CONTENT = "the spans carry no content: what the agent said and did is not seen"
NO_TEXT = "the spans carry no text of what the agent answered"


def has_text(trace: Trace) -> bool:
    return "no_content" not in trace.gaps


def reads_content(spec: Spec) -> bool:
    """Whether the evaluator reads what was said or done, not counts and times alone."""
    return bool(spec.reads & _CONTENT)


def is_blind(spec: Spec, trace: Trace) -> bool:
    """Whether the spans carry nothing of what the evaluator reads of a trace's content.

    Tool calls are facts of their own: a name, an error status or arguments may be there without any text.
    """
    if has_text(trace):
        return False
    return "text" in spec.reads or (reads_content(spec) and not trace.tool_calls)


def shows_fault(outcome: Outcome) -> bool:
    """Whether the outcome tells what went wrong, which is a fact although the rest of the content is not there.

    Without the text everything else only says that no fault was seen.
    """
    if outcome.success is not None:
        return not outcome.success
    return outcome.state == "failed" or (outcome.score is not None and outcome.score < 1)


def unfounded(outcome: Outcome) -> str:
    if outcome.score is None or outcome.score == 1:
        return f"{NO_TEXT}; what they carry of tool calls shows no fault"
    return f"{NO_TEXT}; what they carry of tool calls: {outcome.explanation}"
