"""Argument correctness from facts: the deterministic sibling of PandaProbe's judge."""

from collections.abc import Mapping
from typing import Literal, Self

from evaluators.counts import amount
from evaluators.declare import pandaprobe
from evaluators.judging.answer_schema import list_schema, object_schema, strict_schema
from evaluators.matching.json_values import bounded, brief, left_out
from evaluators.matching.tool_calls import check_arguments, span_ids
from evaluators.model import JSON, Score, Trace
from evaluators.resources import Block, Conversation, Extraction, Question

MOST = 100  # tool calls that one call of a judge can give verdicts for


class CallVerdict(Block, frozen=True, kw_only=True):
    """Whether one call's arguments address the task."""

    verdict: Literal["yes", "no"]
    reason: str | None = None


class Arguments(Block, frozen=True, kw_only=True):
    """Were the arguments of each tool call right for the user's task? One verdict per tool call, in call order."""

    verdicts: tuple[CallVerdict, ...]

    @classmethod
    def question(cls, subject: Trace | Conversation, options: Mapping[str, JSON]) -> Question:
        """Exactly one verdict per call."""
        length = len(subject.tool_calls) if isinstance(subject, Trace) else None
        verdicts = list_schema(strict_schema(CallVerdict), length)
        rubric = super().question(subject, options).rubric
        return Question(rubric=rubric, schema=object_schema({"verdicts": verdicts}))

    @classmethod
    def known(cls, subject: Trace | Conversation, extraction: Extraction | None) -> Self | None:
        """No calls, or too many for one verdict each: no judge is asked."""
        askable = isinstance(subject, Trace) and 0 < len(subject.tool_calls) <= MOST
        return None if askable else cls(verdicts=())

    def check(self, subject: Trace | Conversation, options: Mapping[str, JSON]) -> None:
        """Every call has exactly one verdict."""
        if isinstance(subject, Trace) and len(self.verdicts) != len(subject.tool_calls):
            raise ValueError(f"{len(self.verdicts)} verdicts for {len(subject.tool_calls)} calls")


@pandaprobe(version="1", reads={"tool_calls", "tool_definitions"})
def argument_correctness(trace: Trace) -> Score:
    """Share of tool calls whose arguments satisfy the tool's JSON schema, of those that have both."""
    if not trace.tool_calls:
        nothing: dict[str, JSON] = {"user_input": brief(trace.input), "verdicts": []}
        return Score.assume(1.0, "the trace called no tools", nothing)
    judged, unchecked = check_arguments(trace)
    if not judged:
        why = "no tool call has both arguments and a usable schema"
        return Score.not_applicable(
            why if unchecked is None else f"{why}; not checked: {unchecked}"
        )
    wrong = tuple(call for call, error in judged if error is not None)
    verdicts = [_verdict(error) for _, error in judged]
    kept = bounded(verdicts)
    first = next((f": `{call.name}`: {error}" for call, error in judged if error), "")
    return Score(
        value=1 - len(wrong) / len(judged),
        explanation=f"{len(wrong)} of {amount(len(judged), 'call')} at odds with the schema{first}",
        metadata={"user_input": brief(trace.input), "verdicts": kept},
        evidence=span_ids(wrong),
        truncated="; ".join(filter(None, [left_out("verdicts", kept, verdicts), unchecked]))
        or None,
    )


def _verdict(error: str | None) -> JSON:
    return {"verdict": "yes" if error is None else "no", "reason": error}


NO_REASON = "No reason provided"


@pandaprobe(version="1", name="argument_correctness", reads={"tool_calls", "tool_definitions"})
def judged_argument_correctness(trace: Trace, *, arguments: Arguments) -> Score:
    """Share of tool calls whose arguments address the task, as a judge sees them.

    Raises:
        ValueError: The judge gave more or fewer verdicts than there are calls.
    """
    verdicts, calls = arguments.verdicts, trace.tool_calls
    metadata: dict[str, JSON] = {"user_input": brief(trace.input), "verdicts": []}
    if not calls:
        return Score.assume(1.0, "the trace called no tools", metadata)
    if len(calls) > MOST:
        return Score.not_applicable(f"more than {MOST} tool calls: too many for a verdict each")
    if len(verdicts) != len(calls):
        raise ValueError(f"{len(verdicts)} verdicts for {len(calls)} tool calls")
    wrong = [call for call, each in zip(calls, verdicts, strict=True) if each.verdict == "no"]
    every = [{"verdict": each.verdict, "reason": each.reason} for each in verdicts]
    kept = bounded(every)
    return Score(
        value=1 - len(wrong) / len(calls),
        explanation=_why(verdicts),
        metadata={**metadata, "verdicts": kept},
        evidence=span_ids(wrong),
        truncated=left_out("verdicts", kept, every),
    )


def _why(verdicts: tuple[CallVerdict, ...]) -> str:
    reasons = [each.reason or NO_REASON for each in verdicts if each.verdict == "no"]
    summary = f"{len(reasons)} of {amount(len(verdicts), 'call')} had wrong arguments"
    return f"{summary}: {'; '.join(reasons)}" if reasons else summary
