"""How much work a session took, ranked among earlier sessions of its agent: more work than usual is a sign of trouble.

Inputs of a session, each the sum over its turns, are ranked among those of the agent's earlier sessions; the score is
1 - the mean of the ranks. It sorts sessions; it has no threshold, and pages no one about one of them.
"""

from __future__ import annotations

import hashlib
import struct
from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping
from statistics import median
from typing import NamedTuple

from evaluators.formulas.distribution import rounded
from evaluators.matching.json_values import encoded
from evaluators.model import JSON, Trace
from evaluators.uses import Work

LEAST_HISTORY = 10  # earlier sessions below which an agent is warming up
MOST_HISTORY = 1000  # newest sessions that are remembered
_MOST = (1 << 32) - 1  # greater inputs count as this one
_ROW = len(Work._fields)
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


class WorkHistory:
    """The work of the newest closed sessions of one agent, in the order in which they closed: 56 kB when full.

    Sessions go by numbers of 64 bits.
    """

    def __init__(self, packed: bytes = b"") -> None:
        """`packed`: as `pack` gave it. Raises ValueError: it was not."""
        count, rest = divmod(len(packed), 8 + 4 * _ROW)
        if rest:
            raise ValueError("not a history of work")
        self._sessions = array("Q", struct.unpack_from(f"<{count}Q", packed))
        self._rows = array("I", struct.unpack_from(f"<{count * _ROW}I", packed, 8 * count))
        self._sorted = [array("I", sorted(self._rows[n::_ROW])) for n in range(_ROW)]
        self._terms = sum(_term(each, self._row(at)) for at, each in enumerate(self._sessions))

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[int]:
        return iter(self._sessions)

    def pack(self) -> bytes:
        sessions = struct.pack(f"<{len(self._sessions)}Q", *self._sessions)
        return sessions + struct.pack(f"<{len(self._rows)}I", *self._rows)

    def digest(self, session: int) -> str:
        """Of the other sessions and their work, whatever their order."""
        own = self._find(session)
        return f"{self._terms - (0 if own is None else _term(session, self._row(own))):x}"

    def put(self, session: int, work: Work) -> None:
        """A session has closed; one that closed before is replaced, and the oldest above MOST_HISTORY is forgotten."""
        self.drop(session)
        if len(self._sessions) >= MOST_HISTORY:
            self.drop(self._sessions[0])
        row = _capped(work)
        self._sessions.append(session)
        self._rows.extend(row)
        for values, value in zip(self._sorted, row, strict=True):
            insort(values, value)
        self._terms += _term(session, row)

    def drop(self, session: int) -> None:
        """Forget a session; an unknown one is not an error."""
        at = self._find(session)
        if at is None:
            return
        row = self._row(at)
        del self._sessions[at]
        del self._rows[at * _ROW : (at + 1) * _ROW]
        for values, value in zip(self._sorted, row, strict=True):
            del values[bisect_left(values, value)]
        self._terms -= _term(session, row)

    def rank(self, session: int, work: Work) -> RankedWork | None:
        """The session among the others; None: there are fewer than LEAST_HISTORY of them."""
        own = self._own(session)
        earlier = len(self._sessions) - (own is not None)
        if earlier < LEAST_HISTORY:
            return None
        value = _capped(work)
        ranks: dict[str, float] = {}
        medians: dict[str, float] = {}
        for name in ranked_inputs(work):
            values, mine = self._of(name), None if own is None else getattr(own, name)
            ranks[name] = _rank(values, getattr(value, name), mine) / (earlier + 1)
            medians[name] = _median(values, mine)
        score = 1 - sum(ranks.values()) / len(ranks)
        return RankedWork(rounded(score), ranks, medians, earlier)

    def model_calls_median(self, session: int) -> float | None:
        """The median of model calls in the other sessions; None: there are fewer than LEAST_HISTORY of them."""
        own = self._own(session)
        if len(self._sessions) - (own is not None) < LEAST_HISTORY:
            return None
        return _median(self._of("model_calls"), None if own is None else own.model_calls)

    def calls_a_turn_median(self, session: int) -> float:
        others = (self._row(at) for at, each in enumerate(self._sessions) if each != session)
        return median(each.model_calls / max(1, each.turns) for each in others)

    def _of(self, name: str) -> array[int]:
        return self._sorted[Work._fields.index(name)]

    def _own(self, session: int) -> Work | None:
        at = self._find(session)
        return None if at is None else self._row(at)

    def _find(self, session: int) -> int | None:
        try:
            return self._sessions.index(session)
        except ValueError:
            return None

    def _row(self, at: int) -> Work:
        return Work(*self._rows[at * _ROW : (at + 1) * _ROW])


def _capped(work: Work) -> Work:
    return Work(*(min(value, _MOST) for value in work))


def _term(session: int, work: Work) -> int:
    content = struct.pack(f"<Q{_ROW}I", session, *work)
    return int.from_bytes(hashlib.sha256(content).digest())


def _rank(values: array[int], value: int, own: int | None) -> float:
    """How many of the values are less, ties half, and one half; `own` is one of them that does not count."""
    less, up_to = bisect_left(values, value), bisect_right(values, value)
    rank = less + 0.5 * (up_to - less) + 0.5
    if own is None:
        return rank
    return rank - (1.0 if own < value else 0.5 if own == value else 0.0)


def _median(values: array[int], own: int | None) -> float:
    rest = len(values) - (own is not None)
    at = len(values) if own is None else bisect_left(values, own)

    def nth(index: int) -> int:
        return values[index + (index >= at)]

    return nth(rest // 2) if rest % 2 else (nth(rest // 2 - 1) + nth(rest // 2)) / 2
