"""How much work a session took, ranked among earlier sessions of its agent: more work than usual is a sign of trouble.

Inputs of a session, each the sum over its turns, are ranked among those of the agent's earlier sessions; the score is
1 - the mean of the ranks. It sorts sessions; it has no threshold, and pages nobody about one of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping
from typing import NamedTuple

from evaluators.formulas.distribution import rounded
from evaluators.matching.json_values import encoded
from evaluators.model import JSON, Trace

LEAST_HISTORY = 10
"""Earlier sessions below which an agent is warming up."""
MOST_HISTORY = 1000
"""Newest sessions that are remembered."""


class Work(NamedTuple):
    """The work of one turn, or of the turns of a session."""

    transcript: int = 0
    """Characters of questions, model outputs, tool arguments and tool results."""
    answers: int = 0
    """Characters of model outputs."""
    questions: int = 0
    """Characters of questions."""
    tool_calls: int = 0
    model_calls: int = 0

    @classmethod
    def of(cls, trace: Trace) -> Work:
        """The work of a trace; the system prompt is left out."""
        question = len(trace.input or "")
        answers = sum(len(step.output or "") for step in (*trace.model_calls, *trace.steps))
        tools = sum(
            _length(call.arguments) + _text_length(call.result) for call in trace.tool_calls
        )
        return cls(
            transcript=question + answers + tools,
            answers=answers,
            questions=question,
            tool_calls=len(trace.tool_calls),
            model_calls=len(trace.model_calls) + len(trace.steps),
        )

    def plus(self, other: Work, sign: int = 1) -> Work:
        """The sum, or with sign -1 the difference."""
        return Work(*(mine + sign * its for mine, its in zip(self, other, strict=True)))

    @property
    def ranked(self) -> tuple[str, ...]:
        """The inputs that are ranked: without any exported text only counts of calls."""
        if self.answers or self.questions:
            return ("transcript", "answers", "questions", "tool_calls")
        return ("model_calls", "tool_calls")


def _length(value: JSON) -> int:
    return len(encoded(value).decode(errors="replace"))


def _text_length(value: JSON) -> int:
    if value is None:
        return 0
    return len(value) if isinstance(value, str) else _length(value)


class RankedWork(NamedTuple):
    """A session's work among that of earlier sessions."""

    score: float
    """In (0, 1): 1 - the mean of the ranks."""
    ranks: Mapping[str, float]
    """By input, the share of earlier sessions that took less; ties count half."""
    medians: Mapping[str, float]
    """By input, that of the earlier sessions."""
    earlier: int

    def explanation(self, work: Work) -> str:
        """Times the usual, for each ranked input: "3.1x the usual transcript, 2.4x the usual tool calls"."""
        times = (
            f"{getattr(work, name) / median:.1f}x the usual {name.replace('_', ' ')}"
            for name, median in self.medians.items()
            if median
        )
        return ", ".join(times) or f"ranked among {self.earlier} earlier sessions"


class WorkHistory:
    """The work of the newest closed sessions of one agent, in the order in which they closed."""

    def __init__(self) -> None:
        self._sessions: dict[str, Work] = {}
        self._sorted: dict[str, list[int]] = {name: [] for name in Work._fields}

    def __len__(self) -> int:
        return len(self._sessions)

    def put(self, session: str, work: Work) -> str | None:
        """A session has closed; one that closed before is replaced. Returns the oldest one, if it is forgotten."""
        self.drop(session)
        self._sessions[session] = work
        for name, values in self._sorted.items():
            insort(values, getattr(work, name))
        if len(self._sessions) <= MOST_HISTORY:
            return None
        oldest = next(iter(self._sessions))
        self.drop(oldest)
        return oldest

    def drop(self, session: str) -> None:
        """Forget a session; an unknown one is no error."""
        work = self._sessions.pop(session, None)
        if work is None:
            return
        for name, values in self._sorted.items():
            del values[bisect_left(values, getattr(work, name))]

    def rank(self, session: str, work: Work) -> RankedWork | None:
        """The session among the others; None: there are fewer than LEAST_HISTORY of them."""
        mine = self._sessions.get(session)
        earlier = len(self._sessions) - (mine is not None)
        if earlier < LEAST_HISTORY:
            return None
        ranks: dict[str, float] = {}
        medians: dict[str, float] = {}
        for name in work.ranked:
            values = self._sorted[name]
            own = None if mine is None else getattr(mine, name)
            ranks[name] = _rank(values, getattr(work, name), own) / (earlier + 1)
            medians[name] = _median(values, own)
        score = 1 - sum(ranks.values()) / len(ranks)
        return RankedWork(rounded(score), ranks, medians, earlier)

    def model_calls_median(self, session: str) -> float | None:
        """The median of model calls in the other sessions; None: there are fewer than LEAST_HISTORY of them."""
        mine = self._sessions.get(session)
        if len(self._sessions) - (mine is not None) < LEAST_HISTORY:
            return None
        return _median(self._sorted["model_calls"], None if mine is None else mine.model_calls)


def _rank(values: list[int], value: int, own: int | None) -> float:
    """How many of the values are less, ties half, and one half; `own` is one of them that does not count."""
    less, up_to = bisect_left(values, value), bisect_right(values, value)
    rank = less + 0.5 * (up_to - less) + 0.5
    if own is None:
        return rank
    return rank - (1.0 if own < value else 0.5 if own == value else 0.0)


def _median(values: list[int], own: int | None) -> float:
    rest = len(values) - (own is not None)
    at = len(values) if own is None else bisect_left(values, own)

    def nth(index: int) -> int:
        return values[index + (index >= at)]

    return nth(rest // 2) if rest % 2 else (nth(rest // 2 - 1) + nth(rest // 2)) / 2
