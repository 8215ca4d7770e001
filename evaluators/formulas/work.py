"""How much work a session took, ranked among earlier sessions of its agent: more work than usual is a sign of trouble.

Inputs of a session, each the sum over its turns, are ranked among those of the agent's earlier sessions; the score is
1 - the mean of the ranks. It sorts sessions; it has no threshold, and pages no one about one of them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from statistics import median
from typing import NamedTuple

from evaluators.formulas.distribution import rounded
from evaluators.formulas.row_history import RowHistory
from evaluators.matching.json_values import encoded
from evaluators.model import JSON, Trace
from evaluators.uses import Work

LEAST_HISTORY = 10  # earlier sessions below which an agent is warming up
MOST_HISTORY = 1000  # newest sessions that are remembered
_RANKED = ("transcript", "answers", "questions", "tool_calls")
_WITHOUT_TEXT = ("model_calls", "tool_calls")


def work_of(trace: Trace) -> Work:
    """The work of a trace; the system prompt is left out."""
    question = len(trace.input or "")
    answers = sum(len(step.output or "") for step in (*trace.model_calls, *trace.steps))
    tools = sum(_length(call.arguments) + _text_length(call.result) for call in trace.tool_calls)
    return Work(
        transcript=question + answers + tools,
        answers=answers,
        questions=question,
        tool_calls=len(trace.tool_calls),
        model_calls=len(trace.model_calls) + len(trace.steps),
        turns=1,
    )


def ranked_inputs(work: Work) -> tuple[str, ...]:
    return _RANKED if work.answers or work.questions else _WITHOUT_TEXT


def _length(value: JSON) -> int:
    return len(encoded(value).decode(errors="replace"))


def _text_length(value: JSON) -> int:
    if value is None:
        return 0
    return len(value) if isinstance(value, str) else _length(value)


class RankedWork(NamedTuple):
    score: float  # in (0, 1): 1 - the mean of the ranks
    ranks: Mapping[str, float]
    """By input, the share of earlier sessions that took less; ties count half."""
    medians: Mapping[str, float]  # by input, that of the earlier sessions
    earlier: int

    def explanation(self, work: Work) -> str:
        """Times the usual, for each ranked input: "3.1x the usual transcript, 2.4x the usual tool calls"."""
        times = (
            f"{getattr(work, name) / median:.1f}x the usual {name.replace('_', ' ')}"
            for name, median in self.medians.items()
            if median
        )
        text = ", ".join(times) or f"ranked among {self.earlier} earlier sessions"
        if tuple(self.ranks) == _RANKED:
            return text
        return f"{text} (calls alone: the spans carry no text)"


class WorkHistory(RowHistory):
    """The work of the newest closed sessions of one agent: 56 kB when full."""

    MOST, LEAST, ROW = MOST_HISTORY, LEAST_HISTORY, len(Work._fields)

    def rank(self, session: int, work: Work) -> RankedWork | None:
        """The session among the others; None: there are fewer than LEAST_HISTORY of them."""
        own = self._own(session)
        value = self.capped(work)
        ranks: dict[str, float] = {}
        medians: dict[str, float] = {}
        for name in ranked_inputs(work):
            at = Work._fields.index(name)
            usual = self.median(session, at)
            if usual is None:
                return None
            medians[name], values = usual, self._sorted[at]
            rank = _rank(values, value[at], None if own is None else own[at])
            ranks[name] = rank / (len(values) - (own is not None) + 1)
        score = 1 - sum(ranks.values()) / len(ranks)
        return RankedWork(rounded(score), ranks, medians, len(self) - (own is not None))

    def model_calls_median(self, session: int) -> float | None:
        """The median of model calls in the other sessions; None: there are fewer than LEAST_HISTORY of them."""
        return self.median(session, Work._fields.index("model_calls"))

    def calls_a_turn_median(self, session: int) -> float:
        others = (Work(*self._row(at)) for at, each in enumerate(self) if each != session)
        return median(each.model_calls / max(1, each.turns) for each in others)


def _rank(values: array[int], value: int, own: int | None) -> float:
    """How many of the values are less, ties half, and one half; `own` is one of them that does not count."""
    less, up_to = bisect_left(values, value), bisect_right(values, value)
    rank = less + 0.5 * (up_to - less) + 0.5
    if own is None:
        return rank
    return rank - (1.0 if own < value else 0.5 if own == value else 0.0)
