"""What a repeated tool call is: the one definition that every evaluator uses.

A call repeats an earlier one when tool, arguments and result are the same; failed calls too, with the error in place of
the result. A result that changes is progress: then none of the calls with that tool and these arguments is a repeat,
because polling until a build is done asks the same until the answer differs.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from evaluators.matching.json_values import encoded
from evaluators.model import CallCount, ToolCall

MOST_DISTINCT = 500
"""Distinct calls of a trace that its session remembers: those made most often."""


def repeats(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls that repeat an earlier one, in order; a call whose arguments were not exported repeats none."""
    groups: defaultdict[tuple[str, bytes], list[ToolCall]] = defaultdict(list)
    for call in calls:
        if call.arguments is not None:
            groups[_question(call)].append(call)
    again = {
        id(call)
        for group in groups.values()
        if len(group) > 1 and len({_answer(call) for call in group}) == 1
        for call in group[1:]
    }
    return tuple(call for call in calls if id(call) in again)


def call_counts(calls: Iterable[ToolCall]) -> tuple[CallCount, ...]:
    """How often each call was made with each result; calls whose arguments were not exported are left out."""
    counts = Counter(
        (_digest(*_question(call)), _digest(_answer(call)))
        for call in calls
        if call.arguments is not None
    )
    kept = sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:MOST_DISTINCT]
    return tuple(CallCount(asked, answered, times) for (asked, answered), times in sorted(kept))


def described(calls: Sequence[ToolCall]) -> str:
    """How many calls repeat an earlier one, for an explanation: "3 repeated an earlier one, 2 of them failed"."""
    failed = sum(call.error is not None for call in calls)
    return f"{len(calls)} repeated an earlier one" + (
        f", {failed} of them failed" if failed else ""
    )


def _question(call: ToolCall) -> tuple[str, bytes]:
    return call.name, encoded(call.arguments)


def _answer(call: ToolCall) -> bytes:
    return encoded(call.result) if call.error is None else b"error " + encoded(call.error)


def _digest(*parts: str | bytes) -> int:
    made = b"\0".join(
        part if isinstance(part, bytes) else part.encode(errors="replace") for part in parts
    )
    return int.from_bytes(hashlib.blake2b(made, digest_size=8).digest())
