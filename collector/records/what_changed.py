"""What changed between two sides, the sessions before and since: the ranked causes, then differences. Pure.

tools that fail more -> evaluators whose scores moved -> seconds and cost of a session -> what differs
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from collector.records.moved import EvaluatorScores, Moved, moved
from collector.records.standing import Fault, VersionCount
from evaluators.formulas.differences import Fact, differences
from evaluators.formulas.fault_watch import EXPLAINS, Cause, Counts, evidence, evidence_between

K = TypeVar("K")
MOST = 5  # tools, and evaluators, that are listed


class SessionSide(NamedTuple):
    facts: frozenset[Fact]  # see `evaluators.formulas.differences`
    tools: Mapping[str, bool]  # the tools that it used, and whether a call of it failed
    seconds: float | None  # of its traces together, as is the cost in US dollars; None: unknown
    cost: float | None
    scores: Mapping[str, EvaluatorScores] = {}  # what the evaluators said, by name
    question: str | None = None  # its last one


Side = Sequence[SessionSide]


class ToolCalled(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def failed(self) -> bool: ...


def failed_by_tool(calls: Iterable[ToolCalled]) -> dict[str, bool]:
    """The tools that were called, in order of their first call, and whether any call of each failed."""
    failed: dict[str, bool] = {}
    for each in calls:
        failed[each.name] = failed.get(each.name, False) or each.failed
    return failed


def what_changed(
    before: Side, since: Side, counted: Mapping[str, ToolCounts] | None = None
) -> dict[str, Any]:
    """What changed, the clearest first: `tools` that fail more, `fixed` ones that fail less, `evaluators`, `differs`.

    `counted`: what the fault watches counted of the two, where they are versions that these know; None: the sessions
    are counted. `seconds` and `cost` are None where they did not move.
    """
    counts = tool_counts(before, since) if counted is None else counted
    # A tool that fails more before than since is one that was fixed.
    swapped = {tool: ToolCounts(each.before, each.since) for tool, each in counts.items()}
    return {
        "tools": [{"tool": tool, **each.numbers} for tool, each in failing_more(counts)[:MOST]],
        "fixed": [
            {"tool": tool, **counts[tool].numbers} for tool, _ in failing_more(swapped)[:MOST]
        ],
        "evaluators": [
            {
                "evaluator": each.evaluator,
                "before": _mean(each.before),
                "since": _mean(each.since),
                "rank": each.rank and round(each.rank, 4),
            }
            for each in _clear(before, since, lambda session: session.scores)[:MOST]
        ],
        "seconds": _amount(before, since, lambda session: session.seconds),
        "cost": _amount(before, since, lambda session: session.cost),
        "differs": [
            {**each._asdict(), "before": round(each.before, 4), "since": round(each.since, 4)}
            for each in differences(*([each.facts for each in side] for side in (before, since)))
        ],
    }


def in_words(changed: Mapping[str, Any]) -> list[str]:
    """One line for each thing that changed, as far as two decimals show it; none: nothing clearly did."""
    lines = [
        f"{each['tool']} fails: {each['failures']} of {each['uses']} sessions that used it, "
        f"{each['failures_before']} of {each['uses_before']} before"
        for each in changed["tools"]
    ]
    lines += [
        f"{each['tool']} is fixed: fails in {each['failures']} of {each['uses']} sessions that used it, "
        f"{each['failures_before']} of {each['uses_before']} before"
        for each in changed["fixed"]
    ]
    for each in changed["evaluators"]:
        old, new = (f"{each[side]:.2f}" for side in ("before", "since"))
        if old != new:
            rank = f"rank {each['rank'] or 0:.2f}"
            lines.append(f"{each['evaluator']} moved: mean {old} before, {new} since, {rank}")
    for name, shape in (("seconds", "{:.3g} s"), ("cost", "{:.2g} USD")):
        if (each := changed[name]) is not None:
            old, new = (shape.format(each[side]) for side in ("before", "since"))
            if old != new:
                lines.append(f"{name} a session: median {old} before, {new} since")
    lines += [
        f"different, not necessarily a cause: {each['kind']} {each['value']} in {each['since']:.0%} of sessions, "
        f"{each['before']:.0%} before"
        for each in changed["differs"]
    ]
    return lines


class ToolCounts(NamedTuple):
    since: Counts
    before: Counts

    @classmethod
    def of(cls, fault: Fault) -> Self:
        since = Counts(fault.uses, fault.failures)
        return cls(since, Counts(fault.uses_before, fault.failures_before))

    @property
    def numbers(self) -> dict[str, int]:
        """As they are shown."""
        return {
            "uses": self.since.uses,
            "failures": self.since.failures,
            "uses_before": self.before.uses,
            "failures_before": self.before.failures,
        }


def tool_counts(before: Side, since: Side) -> dict[str, ToolCounts]:
    """Of every tool that a session of either side used, the oldest session first.

    The verdict, the pages and the commands count by this alone, where the fault watches do not know both.
    """
    return _joined(*(_counts(side) for side in (since, before)))


def failing_more(
    counts: Mapping[K, ToolCounts], *, clumped: bool = False
) -> list[tuple[K, ToolCounts]]:
    """Those that clearly fail more than before, the clearest first; `clumped`: also if failures come in clumps."""
    found = [
        (
            evidence_between(*each) if clumped else evidence(*each.since[:2], *each.before[:2]),
            key,
            each,
        )
        for key, each in counts.items()
    ]
    clear = [each for each in found if each[0] >= EXPLAINS]
    return [(key, each) for _, key, each in sorted(clear, key=lambda each: -each[0])]


def counted_by_version(
    counts: Iterable[VersionCount], baseline: str, candidate: str
) -> dict[Cause, ToolCounts]:
    """What the fault watches counted of two versions, by (fault, tool); empty where they do not know both."""
    of: dict[str, dict[Cause, Counts]] = {}
    for version, fault, tool, counted in counts:
        of.setdefault(version, {})[fault, tool] = counted
    if baseline == candidate or baseline not in of or candidate not in of:
        return {}
    return _joined(of[candidate], of[baseline])


def of_tools(counts: Mapping[Cause, ToolCounts]) -> dict[str, ToolCounts] | None:
    """By tool, how often it failed; None: the watches do not know the two versions."""
    return (
        {tool: each for (fault, tool), each in counts.items() if fault == "tool_failed"}
        if counts
        else None
    )


def counted_since(faults: Iterable[Fault], moment: float) -> dict[str, ToolCounts]:
    """By tool that began to fail at this log time, to the second, what its watch counted before and since."""
    return {
        each.tool: ToolCounts.of(each)
        for each in faults
        if each.fault == "tool_failed" and int(each.since) == int(moment)
    }


def _counts(side: Side) -> dict[str, Counts]:
    failed: dict[str, list[bool]] = {}
    for session in side:
        for tool, bad in session.tools.items():
            failed.setdefault(tool, []).append(bad)
    return {tool: Counts.of(each) for tool, each in failed.items()}


def _joined(since: Mapping[K, Counts], before: Mapping[K, Counts]) -> dict[K, ToolCounts]:
    none = Counts()
    return {
        key: ToolCounts(since.get(key, none), before.get(key, none)) for key in {**since, **before}
    }


def _clear(
    before: Side, since: Side, scores: Callable[[SessionSide], Mapping[str, EvaluatorScores]]
) -> list[Moved]:
    sides = ([scores(session) for session in side] for side in (before, since))
    return [each for each in moved(*sides) if each.is_clear]


def _mean(side: Any) -> float | None:
    return None if side is None else round(side.mean, 4)


def _amount(
    before: Side, since: Side, of: Callable[[SessionSide], float | None]
) -> dict[str, float] | None:
    def scores(session: SessionSide) -> Mapping[str, EvaluatorScores]:
        amount = of(session)
        return {} if amount is None else {"": EvaluatorScores(amount, 1, 0, 0)}

    if not _clear(before, since, scores):
        return None
    return {"before": median(_known(before, of)), "since": median(_known(since, of))}


def _known(side: Side, of: Callable[[SessionSide], float | None]) -> Iterable[float]:
    return [amount for session in side if (amount := of(session)) is not None]
