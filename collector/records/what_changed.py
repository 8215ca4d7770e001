"""What changed between two sides, the sessions before and since: the ranked causes, then differences. Pure.

tools that fail more -> evaluators whose scores moved -> seconds and cost of a session -> what differs
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple, Protocol, TypeVar

from collector.records.moved import EvaluatorScores, Moved, moved
from collector.records.standing import VersionCount
from evaluators.formulas.differences import Fact, differences
from evaluators.formulas.fault_watch import EXPLAINS, Cause, evidence

K = TypeVar("K")
MOST = 5  # tools, and evaluators, that are listed


_SWAPPED = tuple(
    (name, name.removesuffix("_before") if name.endswith("_before") else f"{name}_before")
    for name in ("uses", "failures", "uses_before", "failures_before")
)
"""A tool that fails more before than since is one that was fixed: its counts change places."""


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
    swapped = {tool: ToolCounts(*each[2:], *each[:2]) for tool, each in counts.items()}
    return {
        "tools": _failing_more(counts),
        "fixed": [
            {**each, **{new: each[old] for new, old in _SWAPPED}} for each in _failing_more(swapped)
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
        f"differs, which is not a cause: {each['kind']} {each['value']} in {each['since']:.0%} of sessions, "
        f"{each['before']:.0%} before"
        for each in changed["differs"]
    ]
    return lines


class ToolCounts(NamedTuple):
    """Sessions that used a tool, and those of them in which it failed."""

    uses: int
    failures: int
    uses_before: int
    failures_before: int


def tool_counts(before: Side, since: Side) -> dict[str, ToolCounts]:
    """Of every tool that a session of either side used. The verdict, the pages and the commands count by this alone."""
    (uses_before, failures_before), (uses, failures) = _counts(before), _counts(since)
    return {
        tool: ToolCounts(uses[tool], failures[tool], uses_before[tool], failures_before[tool])
        for tool in (uses | uses_before)
    }


def failing_more(counts: Mapping[K, ToolCounts]) -> list[tuple[K, ToolCounts]]:
    """Those that clearly fail more than before, the clearest first."""
    found = [(evidence(*each), key, each) for key, each in counts.items() if each.uses]
    clear = [each for each in found if each[0] >= EXPLAINS]
    return [(key, each) for _, key, each in sorted(clear, key=lambda each: -each[0])]


def counted_by_version(
    counts: Iterable[VersionCount], baseline: str, candidate: str
) -> dict[Cause, ToolCounts]:
    """What the fault watches counted of two versions, by (fault, tool); empty where they do not know both."""
    of: dict[str, dict[Cause, tuple[int, int]]] = {}
    for version, fault, tool, uses, failures in counts:
        of.setdefault(version, {})[fault, tool] = uses, failures
    if baseline == candidate or baseline not in of or candidate not in of:
        return {}
    return {
        cause: ToolCounts(*of[candidate].get(cause, (0, 0)), *of[baseline].get(cause, (0, 0)))
        for cause in {**of[candidate], **of[baseline]}
    }


def of_tools(counts: Mapping[Cause, ToolCounts]) -> dict[str, ToolCounts] | None:
    """By tool, how often it failed; None: the watches do not know the two versions."""
    return (
        {tool: each for (fault, tool), each in counts.items() if fault == "tool_failed"}
        if counts
        else None
    )


def _failing_more(counts: Mapping[str, ToolCounts]) -> list[dict[str, Any]]:
    return [{"tool": tool, **each._asdict()} for tool, each in failing_more(counts)][:MOST]


def _counts(side: Side) -> tuple[Counter[str], Counter[str]]:
    uses = Counter(tool for session in side for tool in session.tools)
    return uses, Counter(tool for session in side for tool, bad in session.tools.items() if bad)


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
