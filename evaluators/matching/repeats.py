"""What a repeated tool call is: the one definition that every evaluator uses.

A call repeats an earlier one when tool, arguments and result are the same; failed calls too, with the error in place of
the result. A result that changes is progress: then none of the calls with that tool and these arguments is a repeat,
because polling until a build is done asks the same until the answer differs; a result that was not exported is no
change, and of refusals one is like the other. Waiting in between (a tool named sleep, wait, ...) repeats nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import NamedTuple

from evaluators.counts import amount
from evaluators.matching.json_values import encoded
from evaluators.model import ToolCall
from evaluators.uses import LONGEST_NAME, CallCount, ToolUse

MOST_DISTINCT = 500  # distinct calls of a trace that its session remembers: those made most often

CIRCLE = 2  # repeats in a row, without a new call in between, that make a circle
_WAITS = re.compile(r"(?<![a-zA-Z])(?:sleep|wait|delay|pause)(?![a-zA-Z])", re.IGNORECASE)
"""In the names of tools that only let time pass: `sleep`, `wait_30s`, `browser.wait`."""


Question = tuple[str, bytes]  # tool and arguments


class _Grouped(NamedTuple):
    calls: Sequence[ToolCall]
    questions: tuple[Question | None, ...]
    """Of each call; None: it can repeat no other one, as its arguments were not exported or it only waits."""
    groups: Mapping[Question, Sequence[ToolCall]]
    again: tuple[ToolCall, ...]  # the calls that repeat an earlier one, in order
    changing: int  # calls whose question was asked before or after with another result
    uncompared: int  # calls whose arguments were not exported


_last: ContextVar[_Grouped | None] = ContextVar("last", default=None)
"""Of the trace that was looked at last: half a dozen evaluators ask about it one after the other."""


def _grouped(calls: Sequence[ToolCall]) -> _Grouped:
    known = _last.get()
    if known is not None and known.calls is calls:
        return known
    waits = {name: _WAITS.search(name) is not None for name in {call.name for call in calls}}
    questions = tuple(
        [None if call.arguments is None or waits[call.name] else _question(call) for call in calls]
    )
    groups: dict[Question, list[ToolCall]] = {}
    for call, question in zip(calls, questions, strict=True):
        if question is not None:
            groups.setdefault(question, []).append(call)
    several = [group for group in groups.values() if len(group) > 1]
    progress = [_is_progress(group) for group in several]
    again = {
        id(call)
        for group, changes in zip(several, progress, strict=True)
        if not changes
        for call in group[1:]
    }
    found = _Grouped(
        calls,
        questions,
        groups,
        tuple([call for call in calls if id(call) in again]) if again else (),
        sum(len(group) for group, changes in zip(several, progress, strict=True) if changes),
        sum(call.arguments is None for call in calls),
    )
    if isinstance(calls, tuple):  # a list may change
        _last.set(found)
    return found


def repeats(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls that repeat an earlier one, in order; a call whose arguments were not exported repeats none."""
    return _grouped(calls).again


def most_repeated(again: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    groups: defaultdict[Question, list[ToolCall]] = defaultdict(list)
    for call in again:
        groups[_question(call)].append(call)
    return tuple(max(groups.values(), key=len, default=()))


def most_asked(calls: Sequence[ToolCall]) -> int:
    return max(map(len, _grouped(calls).groups.values()), default=0)


def are_comparable(calls: Sequence[ToolCall]) -> bool:
    return bool(_grouped(calls).groups)


def is_stuck(calls: Sequence[ToolCall], repeated: Sequence[ToolCall]) -> bool:
    """Whether the agent went round in a circle: it repeated calls twice or more in a row, nothing new in between.

    Looking at the same file again after an edit is not a circle. All 31 labelled runs with a circle failed their task.
    """
    if len(repeated) < CIRCLE:
        return False
    again = {id(call) for call in repeated}
    last: dict[Question, int] = {}
    idle = new = 0
    for place, (call, question) in enumerate(zip(calls, _grouped(calls).questions, strict=True)):
        if question is None:
            continue
        if id(call) not in again:
            idle, new = 0, place
        elif last.get(question, -1) >= new:
            idle += 1
        if idle >= CIRCLE:
            return True
        last[question] = place
    return False


def _is_progress(group: Sequence[ToolCall]) -> bool:
    """Whether one question was answered differently; False of a single call."""
    failed = sum(call.failed for call in group)
    refused = sum(call.rejected is not None for call in group)
    return (
        0 < failed < len(group)
        or 0 < refused < len(group)
        or len({_answer(call) for call in group} - {_UNKNOWN}) > 1
    )


def call_counts(calls: Sequence[ToolCall], tools: Sequence[ToolUse] = ()) -> tuple[CallCount, ...]:
    """How often each call was made with each result; calls whose arguments were not exported are left out."""
    places = {use.tool: place for place, use in enumerate(tools)}
    counts: dict[tuple[int, int, bool, int], int] = {}
    for call, question in zip(calls, _grouped(calls).questions, strict=True):
        if question is not None:
            place = places.get(call.name[:LONGEST_NAME], -1)
            made = (_digest(*question), _digest(_answer(call)), call.failed, place)
            counts[made] = counts.get(made, 0) + 1
    kept = counts.items()
    if len(counts) > MOST_DISTINCT:
        kept = sorted(kept, key=lambda each: (-each[1], each[0]))[:MOST_DISTINCT]
    return tuple(CallCount(*call[:2], times, *call[2:]) for call, times in sorted(kept))


class RepeatCounts(NamedTuple):
    """What a trace or a session says of the repeats among its calls, in the same words."""

    repeated: int
    failed: int  # of the repeated ones
    changing: int  # calls whose question was asked before or after with another result
    uncompared: int  # calls that are not compared, because their arguments were not exported

    @classmethod
    def of(cls, calls: Sequence[ToolCall]) -> RepeatCounts:
        grouped = _grouped(calls)
        return cls(
            repeated=len(grouped.again),
            failed=sum(call.failed for call in grouped.again),
            changing=grouped.changing,
            uncompared=grouped.uncompared,
        )

    def repeats(self, among: str = "") -> str:
        failed = f", {self.failed} of them failed" if self.failed else ""
        return f"{self.repeated} {among}repeated an earlier one{failed}"

    def explanation(self, calls: int, where: str) -> str:
        """All of it, `where` being "trace" or "session"."""
        parts = [self.repeats(f"of {amount(calls, 'tool call')} of the {where} ")]
        if self.changing:
            parts.append(f"{self.changing} asked the same with a changing result")
        if self.uncompared:
            parts.append(f"of {self.uncompared} the arguments were not exported")
        return "; ".join(parts)


def _question(call: ToolCall) -> Question:
    return call.name, encoded(call.arguments)


def _answer(call: ToolCall) -> bytes:
    if call.rejected is not None:
        return _REFUSED
    return encoded(call.result) if call.error is None else b"error " + encoded(call.error)


_UNKNOWN = encoded(None)  # the answer of a call whose result was not exported


_REFUSED = b"refused"  # the answer of a call that was refused, in whatever words


def _digest(*parts: str | bytes) -> int:
    made = b"\0".join(
        [part if isinstance(part, bytes) else part.encode(errors="replace") for part in parts]
    )
    return int.from_bytes(hashlib.blake2b(made, digest_size=8).digest())


UNKNOWN = _digest(_UNKNOWN)  # `CallCount.answered` of a call whose result was not exported
REFUSED = _digest(_REFUSED)  # `CallCount.answered` of a call that was refused


NO_REPEATS = RepeatCounts(0, 0, 0, 0)


class Answers:
    """The results of the calls of one tool with the same arguments, in the turns of a session."""

    __slots__ = ("_times", "calls", "failed")

    def __init__(self) -> None:
        self._times: dict[int, int] = {}
        self.calls = self.failed = 0

    def count(self, answered: int, times: int, *, failed: bool) -> None:
        self.calls += times
        self.failed += times if failed else 0
        all_times = self._times.get(answered, 0) + times
        if all_times:
            self._times[answered] = all_times
        else:
            del self._times[answered]

    @property
    def counts(self) -> RepeatCounts:
        again = self.calls - 1
        if again < 1:
            return NO_REPEATS
        results = len(self._times) - (UNKNOWN in self._times)
        refused = self._times.get(REFUSED, 0)
        if results > 1 or 0 < self.failed < self.calls or 0 < refused < self.calls:
            return RepeatCounts(repeated=0, failed=0, changing=self.calls, uncompared=0)
        return RepeatCounts(
            repeated=again, failed=min(self.failed, again), changing=0, uncompared=0
        )
